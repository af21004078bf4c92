/*
 * hook_python.c: what is seen through the Python interpreter, in ways that it documents and that do not depend on a version of PyTorch:
 * calls of a Python function that begins steps (--step-marker, sys.monitoring of Python 3.12 and later), and steps of optimizers, through
 * the hooks that torch.optim has for all of them, where PyTorch's own callbacks cannot be used (hook_torch.c).
 *
 * The watcher asks the interpreter to call install(), which it does in its main thread between two instructions (Py_AddPendingCall). All
 * functions are looked up by name, and are part of the stable ABI. An error in here is cleared, and means that nothing is seen.
 */
#include "recorder.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define TRIES_MAX 20000u /* number of tries after which a module is considered never imported */

typedef struct object object; /* stands for PyObject */
typedef object *(*function)(object *self, object *args);

/* Layout of PyMethodDef. */
struct method {
	const char *name;
	function call;
	int flags;
	const char *doc;
};
#define METH_VARARGS 1

static struct {
	int (*is_initialized)(void);
	int (*add_pending)(int (*call)(void *), void *arg);
	object *(*import)(const char *name);
	object *(*get)(object *o, const char *name);
	/* returns a borrowed reference, sets no error */
	object *(*get_item)(object *dict, const char *key);
	object *(*call_method)(object *o, const char *name, const char *format, ...);
	object *(*new_function)(struct method *m, object *self, object *module);
	object *(*tuple_item)(object *tuple, ssize_t i); /* returns a borrowed reference */
	const char *(*text)(object *o, ssize_t *len);
	long (*number)(object *o);
	void (*keep)(object *o);
	void (*drop)(object *o);
	void (*clear_error)(void);
	object *none;
} py;

static object *disable; /* the object sys.monitoring.DISABLE */
static _Atomic uint32_t wants_optimizers;
static _Atomic uint32_t marker_done, optimizers_done, pending;
static uint32_t tries;
/* Start of the current Optimizer.step of each thread; steps do not nest. */
static __thread uint64_t step_start __attribute__((tls_model("initial-exec")));

void python_want_optimizers(void)
{
	atomic_store(&wants_optimizers, 1);
}

void python_forget_marker(void)
{
	atomic_store(&marker_done, 0);
}

bool python_is_needed(void)
{
	return *marker_name() != '\0';
}

static bool find_functions(void)
{
	static const struct {
		void *to;
		const char *name;
	} list[] = {
		{ &py.is_initialized, "Py_IsInitialized" },
		{ &py.add_pending, "Py_AddPendingCall" },
		{ &py.import, "PyImport_ImportModule" },
		{ &py.get, "PyObject_GetAttrString" },
		{ &py.get_item, "PyDict_GetItemString" },
		{ &py.call_method, "PyObject_CallMethod" },
		{ &py.new_function, "PyCFunction_NewEx" },
		{ &py.tuple_item, "PyTuple_GetItem" },
		{ &py.text, "PyUnicode_AsUTF8AndSize" },
		{ &py.number, "PyLong_AsLong" },
		{ &py.keep, "Py_IncRef" },
		{ &py.drop, "Py_DecRef" },
		{ &py.clear_error, "PyErr_Clear" },
		{ &py.none, "_Py_NoneStruct" },
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		void *found = dlsym(RTLD_DEFAULT, list[i].name);

		if (!found)
			return false;
		memcpy(list[i].to, &found, sizeof(found));
	}
	return true;
}

static object *none(void)
{
	py.keep(py.none);
	return py.none;
}

/* Returns whether the attribute equals this text. */
static bool has_text(object *o, const char *attribute, const char *text)
{
	object *value = py.get(o, attribute);
	const char *is = value ? py.text(value, NULL) : NULL;
	bool same = is && strcmp(is, text) == 0;

	if (!is)
		py.clear_error();
	if (value)
		py.drop(value);
	return same;
}

/* Callback of sys.monitoring for PY_START: (code, offset). Code of other functions is disabled. */
static object *on_function(object *self, object *args)
{
	object *code = py.tuple_item(args, 0);

	(void)self;
	if (code && (has_text(code, "co_qualname", marker_name()) ||
		     has_text(code, "co_name", marker_name()))) {
		marker_called();
		return none();
	}
	py.clear_error();
	py.keep(disable);
	return disable;
}

/* Returns a free tool number that is not reserved for debuggers, coverage or profilers. */
static int tool_number(object *monitoring)
{
	static const int numbers[] = { 4, 3 };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		object *done =
			py.call_method(monitoring, "use_tool_id", "is", numbers[i], "opwatch");

		if (done) {
			py.drop(done);
			return numbers[i];
		}
		py.clear_error();
	}
	return -1;
}

static void monitor_function(object *monitoring)
{
	static int tool = -1;
	static struct method method = { "opwatch_step", on_function, METH_VARARGS, NULL };
	object *events = py.get(monitoring, "events"),
	       *start = events ? py.get(events, "PY_START") : NULL;
	object *call = py.new_function(&method, NULL, NULL), *done = NULL;
	bool again = tool >= 0; /* the function has changed: all code is examined once more */

	tool = again || !start || !call ? tool : tool_number(monitoring);
	disable = disable ? disable : py.get(monitoring, "DISABLE");
	if (again)
		done = py.call_method(monitoring, "restart_events", NULL);
	else if (tool >= 0 && disable)
		done = py.call_method(monitoring, "register_callback", "iOO", tool, start, call);
	if (done) {
		py.drop(done);
		done = py.call_method(monitoring, "set_events", "iO", tool, start);
	}
	if (done)
		py.drop(done);
	if (call)
		py.drop(call);
	if (start)
		py.drop(start);
	if (events)
		py.drop(events);
	py.clear_error();
}

static void install_marker(void)
{
	object *sys = py.import("sys"), *monitoring = sys ? py.get(sys, "monitoring") : NULL;

	if (monitoring) {
		monitor_function(monitoring);
		py.drop(monitoring);
	}
	if (sys)
		py.drop(sys);
	py.clear_error();
	atomic_store(&marker_done, 1);
}

/* Runs before step() of any optimizer: (optimizer, args, kwargs). */
static object *on_optimizer(object *self, object *args)
{
	(void)self;
	(void)args;
	if (enter()) {
		step_start = now_ns();
		leave();
	}
	return none();
}

/* Writes the name that PyTorch uses: "Optimizer.step#SGD.step". */
static void optimizer_text(object *args, char *text, size_t size)
{
	object *optimizer = py.tuple_item(args, 0);
	object *class = optimizer ? py.get(optimizer, "__class__") : NULL;
	object *value = class ? py.get(class, "__name__") : NULL;
	const char *is = value ? py.text(value, NULL) : NULL;

	snprintf(text, size, "Optimizer.step#%.64s.step", is ? is : "Optimizer");
	if (value)
		py.drop(value);
	if (class)
		py.drop(class);
	if (!is)
		py.clear_error();
}

static object *on_optimizer_done(object *self, object *args)
{
	char text[96];
	struct thread *t;

	(void)self;
	optimizer_text(args, text, sizeof(text));
	if (step_start && enter()) {
		uint64_t now = now_ns();

		t = thread_current();
		if (t)
			push(t, &(struct ring_record){ .start_ns = step_start,
						       .dur_ns = ns_since(step_start, now),
						       .kind = RING_SLICE,
						       .category = RING_RANGE,
						       .name = text_number_cached(t, text) });
		leave();
	}
	step_start = 0;
	return none();
}

static bool add_hook(object *module, const char *with, struct method *method)
{
	object *call = py.new_function(method, NULL, NULL);
	object *done = call ? py.call_method(module, with, "O", call) : NULL;

	if (done)
		py.drop(done);
	if (call)
		py.drop(call);
	py.clear_error();
	return done != NULL;
}

/* Installs the hooks of optimizers once the program has imported them. */
static void install_optimizers(void)
{
	static struct method before = { "opwatch_before_step", on_optimizer, METH_VARARGS, NULL };
	static struct method after = { "opwatch_after_step", on_optimizer_done, METH_VARARGS,
				       NULL };
	object *sys = py.import("sys"), *modules = sys ? py.get(sys, "modules") : NULL;
	object *module = modules ? py.get_item(modules, "torch.optim.optimizer") : NULL;
	object *there = module ? py.get(module, "register_optimizer_step_post_hook") : NULL;

	if (there) {
		(void)(add_hook(module, "register_optimizer_step_pre_hook", &before) &&
		       add_hook(module, "register_optimizer_step_post_hook", &after));
		atomic_store(&optimizers_done, 1);
		py.drop(there);
	}
	if (modules)
		py.drop(modules);
	if (sys)
		py.drop(sys);
	py.clear_error();
}

/* Runs in the main thread of the interpreter, which holds its lock. */
static int install(void *arg)
{
	(void)arg;
	if (process_is_wanted()) {
		if (*marker_name() && !atomic_load(&marker_done))
			install_marker();
		if (atomic_load(&wants_optimizers) && !atomic_load(&optimizers_done))
			install_optimizers();
	}
	atomic_store(&pending, 0);
	return 0;
}

void python_arm(void)
{
	static bool found;
	bool wanted = (*marker_name() && !atomic_load(&marker_done)) ||
		      (atomic_load(&wants_optimizers) && !atomic_load(&optimizers_done));

	if (!wanted || atomic_load(&pending) || tries >= TRIES_MAX)
		return;
	tries++;
	if (!found && !(found = find_functions()))
		return;
	if (!py.is_initialized())
		return;
	atomic_store(&pending, 1);
	if (py.add_pending(install, NULL) != 0)
		atomic_store(&pending, 0);
}
