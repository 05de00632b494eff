"""The customer's script: a persona with a brief that answers, bargains, accepts, objects and sometimes leaves."""
