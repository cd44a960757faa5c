"""Completion of command lines in bash, zsh and fish."""
