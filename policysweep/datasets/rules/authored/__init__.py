"""The rules of an authored folder: the task files, policy and personas that the shipped data set is made of.

They demand more than a data set needs to be played: word counts, markers that must not show through, openings
that differ, facts in the world that make each clause bite. `schema.md` in the folder explains every key.
"""
