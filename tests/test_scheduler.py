"""What the workflow takes away from Snakemake's scheduler is still there to be taken away."""

import inspect

from snakemake.scheduling.job_scheduler import JobScheduler


def test_the_limit_of_jobs_a_second_is_an_attribute_that_may_be_none():
    source = inspect.getsource(JobScheduler)
    assert "if self.job_rate_limiter is not None:" in source
    assert "self._schedule_reevalutation(self.job_rate_limiter.timespan)" in source
