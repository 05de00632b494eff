"""Memory methods: what a bank begins with, what it learns from a task, and how much it recalls.

A method is one small class here and one line in `registry.py`.
"""
