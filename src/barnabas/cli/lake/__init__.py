"""Parts of `barnabas lake`: session and sources, and the commands changes, drift, rollback-plan, audit, plan and report."""
