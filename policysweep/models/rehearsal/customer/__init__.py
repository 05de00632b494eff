"""The customer's script: a persona with a brief that answers, bargains, and sometimes leaves."""
