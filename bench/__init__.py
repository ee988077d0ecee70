"""What is measured, and against what. ``python -m bench``; results stand in README.md beside this file."""
