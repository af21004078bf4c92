# fish completion of opwatch, and of tfprof, the name under which it takes the original's flags.

set -l commands overview view op scope graph code lines functions metrics work opstats pipeline roofline steps phases verdict tracks devices sources notes memory heaps memory_peak memory_steps memory_time advise info nsys-stats sql convert merge export ask push record attach daemon jobs top stacks capture shell formats help
set -l columns bytes peak_bytes residual_bytes output_bytes micros accelerator_micros cpu_micros params float_ops \
    occurrence tensor_value device op_types input_shapes
set -l orders name bytes peak_bytes residual_bytes output_bytes micros accelerator_micros cpu_micros params float_ops \
    occurrence
set -l outputs stdout none json csv folded file:outfile= timeline:outfile= pprof:outfile= flamegraph:outfile=

set -l first "not __fish_seen_subcommand_from $commands"
complete -c opwatch -n $first -a overview -d 'what is in here, and where the time goes'
complete -c opwatch -n $first -a view -d 'one of the views'
complete -c opwatch -n $first -a op -d 'by operation type'
complete -c opwatch -n $first -a scope -d 'by name scope'
complete -c opwatch -n $first -a graph -d 'by graph input and output'
complete -c opwatch -n $first -a code -d 'by line of code'
complete -c opwatch -n $first -a lines -d 'by line of your own code'
complete -c opwatch -n $first -a functions -d 'sampled functions'
complete -c opwatch -n $first -a metrics -d 'what samples measure'
complete -c opwatch -n $first -a work -d 'what a step is spent on'
complete -c opwatch -n $first -a opstats -d 'operations by self time, as XProf counts it'
complete -c opwatch -n $first -a pipeline -d 'the input pipeline and its bottleneck'
complete -c opwatch -n $first -a roofline -d 'achieved and attainable rates of operations'
complete -c opwatch -n $first -a steps -d 'every step'
complete -c opwatch -n $first -a phases -d 'where the time of the steps goes'
complete -c opwatch -n $first -a verdict -d 'one sentence on what the time goes to'
complete -c opwatch -n $first -a tracks -d 'every thread, stream and device'
complete -c opwatch -n $first -a devices -d 'every device'
complete -c opwatch -n $first -a sources -d 'every input'
complete -c opwatch -n $first -a memory -d 'memory over time, at the peak, from step to step'
complete -c opwatch -n $first -a heaps -d 'memory of each device and allocator'
complete -c opwatch -n $first -a memory_peak -d 'what was in use at the peak'
complete -c opwatch -n $first -a memory_steps -d 'memory from step to step'
complete -c opwatch -n $first -a memory_time -d 'memory over time'
complete -c opwatch -n $first -a notes -d 'what was damaged or lost'
complete -c opwatch -n $first -a advise -d 'what to look at'
complete -c opwatch -n $first -a info -d 'what is in a file'
complete -c opwatch -n $first -a nsys-stats -d 'a table as nsys stats prints it'
complete -c opwatch -n $first -a sql -d 'ask in SQL'
complete -c opwatch -n $first -a convert -d 'into an opwatch file, a timeline, a flame graph …'
complete -c opwatch -n $first -a ask -d 'answers by named queries'
complete -c opwatch -n $first -a export -d 'the tables as Parquet, JSON, CSV or Arrow files'
complete -c opwatch -n $first -a merge -d 'many Chrome traces into one'
complete -c opwatch -n $first -a push -d 'runs into a ClickHouse server or cluster'
complete -c opwatch -n $first -a stacks -d 'where running Python jobs are'
complete -c opwatch -n $first -a capture -d 'traces from the profilers in running jobs'
complete -c opwatch -n $first -a shell -d 'ask question after question'
complete -c opwatch -n $first -a formats -d 'what can be read'
complete -c opwatch -n $first -a help -d 'how to use a command'

complete -c opwatch -l json -d 'output as JSON'
complete -c opwatch -l csv -d 'output as CSV'
complete -c opwatch -s n -l limit -x -d 'this many rows'
complete -c opwatch -l time-range -x -d 'only this part of the time: 100:250 (ms), 1.5s:2s'
complete -c opwatch -l rank -x -d 'only what this rank recorded'
complete -c opwatch -l step-marker -x -d 'traces: slices with such a name are the steps'
complete -c opwatch -l full-names -d 'kernels by their whole name'
complete -c opwatch -l metric -x -d 'samples: what to show'
complete -c opwatch -l peak -r -d 'roofline: what the device could do'
complete -c opwatch -l style -x -a 'icicle flame inverted left-heavy pid tid kernel jit all addrs lines total stackcollapse' -d 'of stacks'
complete -c opwatch -l input-shape -x -d 'NAME=100x784, for graphs without shapes'
complete -c opwatch -l memory-limit -x -d 'refuse to use more'
complete -c opwatch -l strict -d 'exit status 3 when something was damaged'
complete -c opwatch -l redact -d 'hash names and paths'
complete -c opwatch -l no-infer -d 'do not compute shapes and float operations'
complete -c opwatch -l checkpoint -r -d 'values of variables'
complete -c opwatch -l format -x -a 'opw live checkpoint graphdef savedmodel metagraph runmeta oplog profile tfevents xspace torch_memory torch_timeline trace nsys speedscope cpuprofile folded perf_script perf_data pprof pprof_legacy' -d 'read all files as this'
complete -c opwatch -s v -l verbose -d 'show every note'
complete -c opwatch -l no-pager -d 'never start a pager'
complete -c opwatch -s h -l help -d 'how to use it'
complete -c opwatch -s V -l version -d 'version and optional parts'
complete -c opwatch -s t -l to -x -a 'opw timeline folded flamegraph svg chart pprof profile oplog proto json csv text tfprof' -d 'convert to'
complete -c opwatch -s o -l out -r -d 'write there'
complete -c opwatch -n '__fish_seen_subcommand_from convert' -l show-dataflow -a 'true false' -d 'timeline: arrows between ops'
complete -c opwatch -n '__fish_seen_subcommand_from convert' -l show-memory -a 'true false' -d 'timeline: tensors and allocators'
complete -c opwatch -n '__fish_seen_subcommand_from nsys-stats' -a "(opwatch nsys-stats 2>/dev/null | string match -r '^  [a-z_]+' | string trim)" -d 'report'
complete -c opwatch -n '__fish_seen_subcommand_from ask' -a "(opwatch ask 2>/dev/null | string match -r '^  [a-z_]+' | string trim)" -d 'query'
complete -c opwatch -n '__fish_seen_subcommand_from ask' -l param -x -d 'a parameter of the query'
complete -c opwatch -n '__fish_seen_subcommand_from ask' -l show -d 'print the query'
complete -c opwatch -n '__fish_seen_subcommand_from ask' -l queries -x -a '(__fish_complete_directories)' -d 'more queries'
complete -c opwatch -n '__fish_seen_subcommand_from export' -l name -x -d 'name of the run'
complete -c opwatch -n '__fish_seen_subcommand_from export' -l table -x -d 'only these tables'
complete -c opwatch -n '__fish_seen_subcommand_from export' -l partition -x -a 'run step' -d 'folders'
complete -c opwatch -n '__fish_seen_subcommand_from export' -l sort -x -d 'by this column'
complete -c opwatch -n '__fish_seen_subcommand_from export' -l compress -x -a 'gzip zstd none' -d 'how'
complete -c opwatch -n '__fish_seen_subcommand_from export' -l split -x -d 'another file after so many bytes'
complete -c opwatch -n '__fish_seen_subcommand_from export' -l bigquery -d 'for BigQuery'
complete -c opwatch -n '__fish_seen_subcommand_from export' -l overwrite -d 'replace what is there'
complete -c opwatch -n '__fish_seen_subcommand_from sql' -l name -x -d 'of a run, in order'
complete -c opwatch -n '__fish_seen_subcommand_from sql' -l run -x -d 'NAME=PATH,…: these files are a run'
complete -c opwatch -n '__fish_seen_subcommand_from sql' -l one-run -d 'all files are one run'
complete -c opwatch -n '__fish_seen_subcommand_from sql' -s f -l file -r -d 'read the query from there'
complete -c opwatch -n '__fish_seen_subcommand_from sql' -l parquet -d 'write the result as Parquet'
complete -c opwatch -n '__fish_seen_subcommand_from sql' -l allow-io -d 'queries may read and write files'
complete -c opwatch -n '__fish_seen_subcommand_from sql' -l temp-dir -x -a '(__fish_complete_directories)' -d 'for what does not fit in memory'
complete -c opwatch -n '__fish_seen_subcommand_from sql' -l threads -x -d 'threads of a query'
complete -c opwatch -n '__fish_seen_subcommand_from merge' -l align -x -a 'keep start sequence' -d 'keep clocks, start at zero, in sequence'
complete -c opwatch -n '__fish_seen_subcommand_from merge' -l keep-name -x -d 'only events of such names'
complete -c opwatch -n '__fish_seen_subcommand_from merge' -l keep-category -x -d 'only events of such categories'
complete -c opwatch -n '__fish_seen_subcommand_from merge' -l keep-pid -x -d 'only events of these pids'
complete -c opwatch -n '__fish_seen_subcommand_from merge' -l keep-time -x -d 'only this part of the time'
complete -c opwatch -n '__fish_seen_subcommand_from merge' -l keep-step -x -d 'only these steps: 5 or 5-7'
complete -c opwatch -n '__fish_seen_subcommand_from merge' -l no-labels -d 'leave the names of processes alone'
complete -c opwatch -n $first -a record -d 'run a program and record what it does'
complete -c opwatch -n $first -a attach -d 'record processes that run'
complete -c opwatch -n $first -a daemon -d 'serve all jobs of this host'
complete -c opwatch -n $first -a jobs -d 'the jobs that the daemon records'
complete -c opwatch -l job -x -a '(opwatch jobs --csv 2>/dev/null | sed 1d | cut -d, -f1)' -d 'a job of the daemon'
complete -c opwatch -l last -x -d 'what a job did last: 60s'
complete -c opwatch -l socket -r -d 'of the daemon'
complete -c opwatch -n '__fish_seen_subcommand_from daemon' -l dir -r -d 'rings go there'
complete -c opwatch -n '__fish_seen_subcommand_from daemon' -l total-size -x -d 'all rings grow no larger'
complete -c opwatch -n '__fish_seen_subcommand_from daemon' -l metrics -x -d 'port of /metrics'
complete -c opwatch -n '__fish_seen_subcommand_from daemon' -l all-users -d 'users see their own jobs'
complete -c opwatch -n '__fish_seen_subcommand_from daemon' -l no-kineto -d 'leave the socket of dynolog alone'
complete -c opwatch -n '__fish_seen_subcommand_from jobs' -l env -d 'for the environment of a job'
complete -c opwatch -n '__fish_seen_subcommand_from attach' -l detach -d 'take the hooks out of a job'
complete -c opwatch -n $first -a top -d 'running jobs, as they go'
complete -c opwatch -n '__fish_seen_subcommand_from record' -l ring -x -d 'room for so many records per thread'
complete -c opwatch -n '__fish_seen_subcommand_from record' -l max-size -x -d 'the file grows no larger'
complete -c opwatch -n '__fish_seen_subcommand_from record attach daemon' -l on-slowdown -x -d 'steps take so much longer: save why'
complete -c opwatch -n '__fish_seen_subcommand_from record attach daemon' -l on-stall -x -d 'no step for so long: save why'
complete -c opwatch -n '__fish_seen_subcommand_from top' -l once -d 'print it once, as text'
complete -c opwatch -n '__fish_seen_subcommand_from push' -l cluster -x -d 'to all shards of this cluster'
complete -c opwatch -n '__fish_seen_subcommand_from push' -l nodes -x -d 'the nodes of the cluster'
complete -c opwatch -n '__fish_seen_subcommand_from push' -l table -x -d 'only these: event,op'
complete -c opwatch -n '__fish_seen_subcommand_from push' -l name -x -d 'all files are one run of this name'
complete -c opwatch -n '__fish_seen_subcommand_from push' -l replace -d 'a run of that name and other content'
complete -c opwatch -n '__fish_seen_subcommand_from push' -l connections -x -d 'at once'
complete -c opwatch -n '__fish_seen_subcommand_from push' -l batch-rows -x -d 'rows of a batch'
complete -c opwatch -n '__fish_seen_subcommand_from push' -l retry-for -x -d 'how long a node may be away, in seconds'
complete -c opwatch -n '__fish_seen_subcommand_from capture' -l tf -x -d 'the profiler of this job'
complete -c opwatch -n '__fish_seen_subcommand_from capture' -l kineto -d 'PyTorch jobs that wait for it'
complete -c opwatch -n '__fish_seen_subcommand_from capture' -l for -x -d 'how long: 2s'
complete -c opwatch -n '__fish_seen_subcommand_from record attach daemon' -l stacks -d 'Python stacks, too'
complete -c opwatch -n '__fish_seen_subcommand_from stacks record attach' -l hz -x -d 'samples per second'
complete -c opwatch -n '__fish_seen_subcommand_from stacks' -l for -x -d 'how long: 10s, 500ms, 2m'
complete -c opwatch -n '__fish_seen_subcommand_from stacks' -l native -d 'native stacks, too'
complete -c opwatch -n '__fish_seen_subcommand_from stacks' -l no-children -d 'not what the processes start'
complete -c opwatch -n '__fish_seen_subcommand_from sql' -l on -x -d 'ask this ClickHouse server'
complete -c opwatch -l password-file -r -d 'a password of a server'
complete -c opwatch -n '__fish_seen_subcommand_from info' -l verify -d 'check the checksums of an opwatch file'
complete -c opwatch -n '__fish_seen_subcommand_from info' -l estimate -d 'size, events and memory before loading'

complete -c opwatch -l select -x -a "(__fish_append , $columns)" -d 'columns'
complete -c opwatch -l order-by -x -a "$orders" -d 'sort by this column'
complete -c opwatch -l output -x -a "$outputs" -d 'where and how to write'
complete -c opwatch -l account-displayed-op-only -d 'count only what is shown'
complete -c opwatch -l max-depth -x -d 'levels to show'
complete -c opwatch -l step -x -d 'this step instead of the average'
for metric in bytes peak-bytes residual-bytes output-bytes micros accelerator-micros cpu-micros params float-ops occurrence
    complete -c opwatch -l min-$metric -x -d "hide rows below this"
end
for part in account-type start-name trim-name show-name hide-name
    complete -c opwatch -l $part-regexes -x -d 'regular expressions, with commas between'
end

complete -c tfprof -f -a 'scope graph code op advise help'
for file in profile graph run_meta op_log checkpoint
    complete -c tfprof -l {$file}_path -r
end
complete -c tfprof -l select -x -a "(__fish_append , $columns)"
complete -c tfprof -l order_by -x -a "$orders"
complete -c tfprof -l output -x -a "$outputs"
complete -c tfprof -l account_displayed_op_only
for name in max_depth step
    complete -c tfprof -l $name -x
end
for metric in bytes peak_bytes residual_bytes output_bytes micros accelerator_micros cpu_micros params float_ops occurrence
    complete -c tfprof -l min_$metric -x
end
for part in account_type start_name trim_name show_name hide_name
    complete -c tfprof -l {$part}_regexes -x
end
