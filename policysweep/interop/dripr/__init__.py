"""The files of the public DRIP-R code (arXiv 2605.07699): conversation records and evaluations.

shape          what a conversation record must look like
scenarios      which scenario and row a record plays; a scenario as the data set writes it
transcript     conversation_1 <-> messages and the customer's tool traffic
conversation   one record <-> one episode
evaluation     the verdicts on an episode -> one evaluation record
"""
