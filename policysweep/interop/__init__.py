"""Conversations, verdicts and labels in the files of others.

    import    conversation records of the public DRIP-R code  -> a run
    export    a run -> the public code's files, protobuf JSON Lines, or Parquet tables
    labels    scores that people gave (CSV, JSON Lines)       -> beside the records of a run

What the files hold is checked at the edge and told with file, line and field; nothing is written before all
of it is sound. docs/interop.md describes every file.
"""
