# bash completion of opwatch, and of tfprof, the name under which it takes the original's flags.
# Commands and options are those of `opwatch --help` and `opwatch COMMAND --help`; a test compares them.

_opwatch_commands="overview view op scope graph code lines functions metrics work opstats pipeline roofline steps phases verdict tracks devices sources notes memory heaps memory_peak memory_at memory_steps memory_time advise path what-if diff baseline hang ranks info nsys-stats sql convert merge export ask push record attach daemon jobs top stacks capture ui report shell formats help"
_opwatch_columns="bytes peak_bytes residual_bytes output_bytes micros accelerator_micros cpu_micros params float_ops
	occurrence tensor_value device op_types input_shapes"
_opwatch_view_options="max-depth min-bytes min-peak-bytes min-residual-bytes min-output-bytes min-micros
	min-accelerator-micros min-cpu-micros min-params min-float-ops min-occurrence step order-by
	account-type-regexes start-name-regexes trim-name-regexes show-name-regexes hide-name-regexes
	account-displayed-op-only select output"
_opwatch_general_options="json csv ndjson arrow parquet limit time-range rank step-marker full-names peak metric style input-shape no-infer checkpoint format memory-limit strict redact
	align no-pager verbose to out help version"

# Completes the last piece of a comma-separated list of the words in $1.
_opwatch_list() {
	local done=""
	[[ $cur == *,* ]] && done=${cur%,*},
	COMPREPLY=($(compgen -P "$done" -W "$1" -- "${cur##*,}"))
	compopt -o nospace
}

# Completes the value of option $1 (without dashes, with blanks as underscores); fails if it is none we know.
_opwatch_value() {
	case $1 in
	select) _opwatch_list "$_opwatch_columns" ;;
	order_by) COMPREPLY=($(compgen -W "name ${_opwatch_columns%%tensor_value*}" -- "$cur")) ;;
	output)
		COMPREPLY=($(compgen -W "stdout none json csv folded file:outfile= timeline:outfile= pprof:outfile=
			flamegraph:outfile=" -- "$cur"))
		compopt -o nospace
		;;
	format) COMPREPLY=($(compgen -W "opw live checkpoint graphdef savedmodel metagraph runmeta oplog profile tfevents xspace torch_memory torch_timeline trace nsys speedscope cpuprofile firefox folded perf_script perf_data pprof pprof_legacy" -- "$cur")) ;;
	to) COMPREPLY=($(compgen -W "opw timeline folded flamegraph svg markdown junit github sarif chart pprof profile oplog proto json csv text tfprof parquet ndjson arrow" -- "$cur")) ;;
	*_path | checkpoint | out | o | password_file) COMPREPLY=($(compgen -f -- "$cur")); compopt -o filenames ;;
	style) _opwatch_list "icicle flame inverted left-heavy pid tid kernel jit all addrs lines total stackcollapse" ;;
	metric) COMPREPLY=() ;;
	base | new) COMPREPLY=($(compgen -f -- "$cur")); compopt -o filenames ;;
	fail_if) COMPREPLY=($(compgen -W "step_time peak_memory launches op: phase:" -- "$cur")) ;;
	by) COMPREPLY=($(compgen -W "op line kind rank" -- "$cur")) ;;
	partition) COMPREPLY=($(compgen -W "run step" -- "$cur")) ;;
	compress) COMPREPLY=($(compgen -W "gzip zstd none" -- "$cur")) ;;
	table | sort | split | name | param) COMPREPLY=() ;;
	queries) COMPREPLY=($(compgen -d -- "$cur")); compopt -o filenames ;;
	align) COMPREPLY=($(compgen -W "keep start sequence clocks" -- "$cur")) ;;
	keep_*) COMPREPLY=() ;;
	job) COMPREPLY=($(compgen -W "$(opwatch jobs --csv 2>/dev/null | sed 1d | cut -d, -f1)" -- "$cur")) ;;
	socket) COMPREPLY=($(compgen -f -- "$cur")); compopt -o filenames ;;
	dir) COMPREPLY=($(compgen -d -- "$cur")); compopt -o filenames ;;
	last | total_size | metrics) COMPREPLY=() ;;
	hz | for | on_slowdown | on_stall | tf | cluster | nodes | on | connections | batch_rows | retry_for) COMPREPLY=() ;;
	max_depth | min_* | step | limit | time_range | rank | *_regexes | input_shape | memory_limit) COMPREPLY=() ;;
	*) return 1 ;;
	esac
}

# What the command of the line takes: the program itself knows best. Without it, what most of them take.
_opwatch_options() {
	local word command=op
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		[[ " $_opwatch_commands " == *" $word "* ]] && command=$word && break
	done
	"${COMP_WORDS[0]}" help "$command" 2>/dev/null | sed -n 's/^  \(-., \|    \)--\([a-z-]*\).*/\2/p' | grep . ||
		printf '%s ' "$_opwatch_view_options $_opwatch_general_options"
}

_opwatch() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} option options
	COMPREPLY=()
	# "=" is a word break: --select=mi arrives as "--select" "=" "mi".
	[[ $cur == = ]] && cur=
	[[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}
	if [[ $prev == -* ]]; then
		option=${prev##+(-)}
		_opwatch_value "${option//-/_}" && return
	fi
	if [[ $cur == -* ]]; then
		options=$(_opwatch_options)
		COMPREPLY=($(compgen -W "$(printf -- '--%s ' $options) -n" -- "$cur"))
		return
	fi
	if ((COMP_CWORD == 2)) && [[ $prev == help ]]; then
		COMPREPLY=($(compgen -W "$_opwatch_commands" -- "$cur"))
		return
	fi
	((COMP_CWORD == 2)) && [[ $prev == nsys-stats ]] &&
		COMPREPLY=($(compgen -W "$(opwatch nsys-stats 2>/dev/null | sed -n 's/^  \([a-z_]*\) .*/\1/p')" -- "$cur"))
	((COMP_CWORD == 2)) && [[ $prev == ask ]] &&
		COMPREPLY=($(compgen -W "$(opwatch ask 2>/dev/null | sed -n 's/^  \([a-z_]*\) .*/\1/p')" -- "$cur"))
	((COMP_CWORD == 1)) && COMPREPLY=($(compgen -W "$_opwatch_commands" -- "$cur"))
	COMPREPLY+=($(compgen -f -- "$cur"))
	compopt -o filenames
}

_opwatch_tfprof() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} options
	COMPREPLY=()
	[[ $cur == = ]] && cur=
	[[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD - 2]}
	if [[ $prev == -* ]]; then
		_opwatch_value "${prev##+(-)}" && return
	fi
	if [[ $cur == -* ]]; then
		options="profile_path graph_path run_meta_path op_log_path checkpoint_path ${_opwatch_view_options//-/_}"
		COMPREPLY=($(compgen -W "$(printf -- '--%s= ' $options)" -- "$cur"))
		compopt -o nospace
		return
	fi
	COMPREPLY=($(compgen -W "scope graph code op advise help" -- "$cur"))
}

shopt -s extglob
complete -F _opwatch opwatch
complete -F _opwatch_tfprof tfprof
