"""Attempts on the nodes of a Ray cluster: ``--evocode-cluster=ray``.

The unit is the attempt. pytest's session on the driver collects the rounds and runs their items as it always does: only
the :class:`~pytest_evocode.trial.trial.Trial` behind them is elsewhere. So reports, exit status, ``-x``, the live view
and whatever other plugins write are the same as in a session on one machine; no report is sent through the network.

==================  ================================================================================================
the driver          :mod:`.driver` runs items as their records come, in the order in which they come;
                    :mod:`.remote_trial` is what an item takes for its trial; :mod:`.driver` places attempts, takes
                    what they send and gives those of lost nodes to other nodes; :mod:`.placement` decides where and how
                    many, and knows nothing of Ray
one Ray actor       ``Broker`` in :mod:`.node`: messages to the driver, what the run has spent, which attempts stop
a Ray task          :mod:`.node`: holds an attempt's resources in Ray's account, and passes messages on
a process beside    :mod:`.attempt_process`: runs the trial. It is no child of Ray's process, which kills its
                    children: when Ray's process ends, however it does, the connection between the two breaks, and the
                    attempt stops with all teardowns, so that no container is left
==================  ================================================================================================

It belongs to the plugin, as xdist's part does, because it is about a session's attempts; the modules that run on nodes
know nothing of pytest. Ray is imported when a session has the option, and on nodes.
"""
