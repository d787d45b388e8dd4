"""Prompts and shape in stages: the prompts of each role, then the shape with them, then the prompts again in it.

The order is that of MASS (multi-agent system search, arXiv 2502.02533, section 4): prompts that are good for one role
at a time make the shapes comparable, and the best shape deserves prompts made for it. What a stage changes stays only
if it scores better on dev, paired with the program before it.
"""
