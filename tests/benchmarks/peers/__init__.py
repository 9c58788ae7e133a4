"""The loop beside other runtimes: our script for a shared harness, and the page's region."""
