"""A cluster in a box: the installation as processes of one machine, disturbed while it works.

    names.py         the cluster's name server: which pods are ready behind a Service
    pods.py          the kubelet: processes that are started again when they end
    jobs.py          Indexed Jobs, by the rules of the manifest
    installation.py  what is installed, and what it is told to do
    disturbing.py    what goes wrong, and when: drawn from a seed
    watching.py      Prometheus, and what it saw
    running.py       one run from the first process to the proofs
    figures.py       the table at the end

Each pod has an address of its own on the loopback network and the ports of the manifests. All gRPC goes over
mutual TLS, results go to an S3 server, and nothing of the product is replaced. Model servers are rehearsal.
"""
