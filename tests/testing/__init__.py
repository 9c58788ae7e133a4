"""The testing kit itself: stages, fixtures, scripts, cancels everywhere."""
