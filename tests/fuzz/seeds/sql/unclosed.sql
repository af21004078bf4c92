SELECT `p.traces.job_1, 'open /* text
