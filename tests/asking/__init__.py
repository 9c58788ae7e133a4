"""Tools that write their own question: buttons, state, people, time, and losses."""
