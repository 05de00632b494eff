"""The rules that data sets must keep. Pure: a rule gets values and yields findings."""
