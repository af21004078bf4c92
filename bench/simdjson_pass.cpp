// simdjson_pass.cpp: the reference that bench/trace compares with: simdjson's On-Demand reader visits all events of a
// trace and reads two values of each, `dur` and `args.name`, in one thread. Reading the file is not counted. Prints
// seconds.
#include <chrono>
#include <cstdio>
#include <simdjson.h>
#include <string>
#include <unordered_map>

using namespace simdjson;

static void one_event(ondemand::object event, std::unordered_map<std::string, double> &sums)
{
	std::string_view name;
	double dur = -1;

	for (auto field : event) {
		ondemand::raw_json_string key;

		if (field.key().get(key))
			continue;
		if (key == "dur") {
			if (field.value().get_double().get(dur))
				dur = -1;
		} else if (key == "args") {
			ondemand::object args;

			if (field.value().get_object().get(args))
				continue;
			for (auto arg : args) {
				ondemand::raw_json_string arg_key;

				if (!arg.key().get(arg_key) && arg_key == "name" &&
				    arg.value().get_string().get(name))
					name = "";
			}
		}
	}
	if (dur >= 0)
		sums[std::string(name)] += dur;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	padded_string json = padded_string::load(argv[1]);
	auto start = std::chrono::steady_clock::now();
	ondemand::parser parser;
	auto document = parser.iterate(json);
	std::unordered_map<std::string, double> sums;
	size_t events = 0;

	for (auto element : document["traceEvents"].get_array()) {
		ondemand::object event;

		if (element.get_object().get(event))
			continue;
		events++;
		one_event(event, sums);
	}
	std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
	std::printf("%.3f %zu\n", seconds.count(), events);
}
