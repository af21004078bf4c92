/*
 * process.c: the process as the collector sees it: its region of shared memory, the connection over which regions and rings
 * are passed, and what happens after a fork. The collector is found through the environment, or given by `opwatch attach`.
 * Called by thread.c, watcher.c and the hooks; the records themselves are in thread.c.
 */
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define HIGH_DESCRIPTOR 400
#define FROM_LIMIT 32
#define LEAST_LIMIT 128
#define FEW_DESCRIPTORS                                                                            \
	"its limit of open files (ulimit -n) is below 128, and the recorder would use up some "    \
	"of them: nothing is recorded"
#define STRICT                                                                                     \
	"its code enters the strict sandbox (seccomp) by an instruction of its own, which takes "  \
	"the clock away from the recorder: nothing is recorded"
#define REGION_BYTES ((size_t)RING_TEXT_OFFSET + RING_TEXT_BYTES)
/* after this many closings by the program, the descriptors are not opened again */
#define RENEWALS 16u

struct ring_process *recorder_process;

/* A page that reads as zero in children, so that they know they are children however they were forked. */
static volatile uint32_t nothing[2];
volatile uint32_t *recorder_generation = nothing;
#define HAS_STATUS 1 /* value behind the generation: 1 in a child whose status file is open */

static struct {
	char socket_path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	_Atomic uint32_t preparing;
	/* generation of this process; in a child that is not prepared, of its parent */
	uint32_t generation;
	bool wanted, forked;
	int socket, region;
	uint64_t socket_inode, region_inode;
	int status; /* descriptor of /proc/self/status, opened early and not yet read */
	uint64_t status_inode;
	unsigned long filters;
	struct ring_process *place; /* address of the previous shared memory */
	uint32_t parent, renewed;
	uint32_t fork_pid; /* a child that the C library forked */
	uint32_t raw;	   /* raw_calls() */
} self = { .socket = -1, .region = -1, .status = -1 };

static rlim_t descriptor_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

/* Moves a descriptor to a high number, because programs expect the lowest free numbers. */
int descriptor_move_high(int fd)
{
	rlim_t limit = descriptor_limit();
	int from =
		limit >= HIGH_DESCRIPTOR + FROM_LIMIT ? HIGH_DESCRIPTOR : (int)limit - FROM_LIMIT;
	int high = fd < 0 || from < 3 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, from);

	if (fd >= 0)
		close(fd);
	return high;
}

uint64_t descriptor_inode(int fd)
{
	struct stat st;
	int error = errno;
	uint64_t inode = fstat(fd, &st) == 0 ? (uint64_t)st.st_ino ^ (uint64_t)st.st_dev << 40 : 0;

	errno = error;
	return inode;
}

bool descriptor_is(int fd, uint64_t inode)
{
	return fd >= 0 && inode && descriptor_inode(fd) == inode;
}

/* Returns whether a memory file may have this size: the limit of file sizes applies, and
 * exceeding it kills the process. */
static bool is_allowed(size_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
	       (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= size);
}

void *memory_new(const char *name, size_t size, void *at, int *fd, uint64_t *inode)
{
	void *memory;

	*fd = !is_allowed(size)
		      ? -1
		      : descriptor_move_high(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
	if (*fd < 0)
		return NULL;
	memory = ftruncate(*fd, (off_t)size) == 0 ? mmap(at, size, PROT_READ | PROT_WRITE,
							 MAP_SHARED | (at ? MAP_FIXED : 0), *fd, 0)
						  : MAP_FAILED;
	if (memory == MAP_FAILED ||
	    fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		if (memory != MAP_FAILED && !at)
			munmap(memory, size);
		close(*fd);
		*fd = -1;
		return NULL;
	}
	*inode = descriptor_inode(*fd);
	return memory;
}

static bool send_message(int socket, enum ring_message_kind kind, uint32_t number, int fd)
{
	struct ring_message message = {
		.version = RING_VERSION, .kind = kind, .pid = (uint32_t)getpid(), .number = number
	};
	struct iovec part = { &message, sizeof(message) };
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr packet = { .msg_iov = &part, .msg_iovlen = 1 };
	int error = errno;
	bool sent;

	memcpy(message.magic, RING_HELLO_MAGIC, sizeof(message.magic));
	if (fd >= 0) {
		memset(&control, 0, sizeof(control));
		packet.msg_control = &control;
		packet.msg_controllen = sizeof(control);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	/* a direct system call, because the C library's function is a cancellation point */
	sent = syscall(SYS_sendmsg, socket, &packet, MSG_DONTWAIT | MSG_NOSIGNAL) ==
	       (long)sizeof(message);
	errno = error;
	return sent;
}

bool process_is_connected(void)
{
	char byte;
	ssize_t n;

	if (!descriptor_is(self.socket, self.socket_inode))
		return false;
	n = recv(self.socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

bool process_send(enum ring_message_kind kind, uint32_t number, int fd)
{
	return descriptor_is(self.socket, self.socket_inode) &&
	       send_message(self.socket, kind, number, fd);
}

static unsigned long read_filters(int fd)
{
	static char text[4096]; /* only one thread at a time runs this */
	ssize_t len = syscall(SYS_read, fd, text, sizeof(text) - 1);

	text[len > 0 ? len : 0] = '\0';
	return len > 0 ? ring_filters(text) : ULONG_MAX;
}

static int open_status(void)
{
	return (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC);
}

static void close_status(void)
{
	if (descriptor_is(self.status, self.status_inode))
		close(self.status);
	descriptor_is_ours(self.status, false);
	self.status = -1;
}

/* Opens /proc/self/status early. Its text is made when it is read, which happens once. */
static void open_status_ahead(void)
{
	int fd = open_status();

	self.filters = read_filters(fd);
	if (fd >= 0)
		close(fd);
	close_status();
	self.status = descriptor_move_high(open_status());
	self.status_inode = descriptor_inode(self.status);
	descriptor_is_ours(self.status, true);
}

bool process_is_filtered(void)
{
	bool filtered = self.status < 0 || read_filters(self.status) > self.filters;

	if (filtered)
		return true;
	open_status_ahead();
	return false;
}

/* Opens the status file of a child at the same number, because the inherited file is its
 * parent's. */
static void open_status_of_child(void)
{
	int fd = self.status < 0 || !descriptor_is_known_as_ours(self.status) ? -1 : open_status();

	if (fd < 0)
		return;
	if (syscall(SYS_dup3, fd, self.status, O_CLOEXEC) == self.status) {
		self.status_inode = descriptor_inode(self.status);
		recorder_generation[HAS_STATUS] = 1;
	}
	syscall(SYS_close, fd);
}

/* Returns whether a child has a filter. A child that the C library did not fork has opened nothing early. */
static bool child_is_filtered(void)
{
	bool filtered;
	int fd;

	if (recorder_generation[HAS_STATUS])
		return read_filters(self.status) > self.filters;
	if (self.raw & RAW_FILTER)
		return true;
	fd = open_status();
	filtered = fd < 0 || read_filters(fd) > self.filters;
	if (fd >= 0)
		close(fd);
	return filtered;
}

static int connect_collector(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
		close(fd);
		return -1;
	}
	return descriptor_move_high(fd);
}

void process_hang_up(void)
{
	if (descriptor_is(self.socket, self.socket_inode))
		close(self.socket);
	descriptor_is_ours(self.socket, false);
	self.socket = -1;
}

/* Reconnects: sends the shared memory first, then the rings. */
bool process_reconnect(void)
{
	process_hang_up();
	if (!descriptor_is(self.region, self.region_inode))
		return false;
	self.socket = connect_collector(self.socket_path);
	self.socket_inode = self.socket < 0 ? 0 : descriptor_inode(self.socket);
	descriptor_is_ours(self.socket, true);
	return process_send(RING_HELLO, 0, self.region);
}

void process_refuse(const char *socket_path, enum ring_refusal why)
{
	int fd = connect_collector(socket_path);

	if (fd < 0)
		return;
	send_message(fd, RING_REFUSAL, why, -1);
	close(fd);
}

static uint32_t command_text(void)
{
	/* static, because a child's first record may be on a small stack */
	static char text[RING_TEXT_MAX];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (fd >= 0)
		close(fd);
	return len > 0 ? text_number(text, (size_t)len) : 0;
}

/* Reads only the variables that identify the job from the environment. */
static uint32_t identity_text(void)
{
	static const char *const names[] = {
		"RANK",		 "LOCAL_RANK",	  "WORLD_SIZE",		  "MASTER_ADDR",
		"MASTER_PORT",	 "SLURM_JOB_ID",  "SLURM_PROCID",	  "SLURM_NTASKS",
		"SLURM_LOCALID", "SLURM_STEP_ID", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
		"PMI_RANK",	 "PMI_SIZE",	  "OPWATCH_JOB",
	};
	static char text[RING_TEXT_MAX];
	size_t at = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = getenv(names[i]);
		int len;

		if (!value)
			continue;
		len = snprintf(text + at, sizeof(text) - at, "%s=%.128s", names[i], value);
		if (len < 0 || (size_t)len >= sizeof(text) - at)
			break;
		at += (size_t)len + 1;
	}
	if (*marker_name() && at + sizeof(RING_ENV_MARKER) + RING_MARKER_MAX < sizeof(text))
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s=%s", RING_ENV_MARKER,
				       marker_name()) +
		      1;
	return at ? text_number(text, at) : 0;
}

static void read_clocks(struct ring_process *p)
{
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	p->clock_monotonic_ns = clock_ns();
	p->clock_wall_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
}

static struct ring_process *region_memory(struct ring_process *at)
{
	struct ring_process *p =
		memory_new("opwatch-process", REGION_BYTES, at, &self.region, &self.region_inode);

	descriptor_is_ours(self.region, p != NULL);
	return p;
}

static bool region_new(void)
{
	struct ring_process *p = region_memory(self.place);

	if (!p)
		return false;
	self.place = p;
	p->version = RING_VERSION;
	p->pid = (uint32_t)getpid();
	p->parent = self.forked ? self.parent : (uint32_t)getppid();
	p->forked = self.forked;
	p->text_bytes = RING_TEXT_BYTES;
	atomic_store(&p->text_used, 1);
	read_clocks(p);
	recorder_process = p;
	p->command = command_text();
	p->identity = identity_text();
	memcpy(p->magic, RING_PROCESS_MAGIC, sizeof(p->magic));
	return true;
}

/* The recorder uses at most this part of a limit, so that the program does not lack memory. */
#define LIMIT_SHARE 64u
#define MEMORY_BYTES (REGION_BYTES + 4 * ring_bytes(RING_RECORDS))

static bool has_room_below(int limit)
{
	struct rlimit found;

	return getrlimit(limit, &found) != 0 || found.rlim_cur == RLIM_INFINITY ||
	       found.rlim_cur / LIMIT_SHARE >= MEMORY_BYTES;
}

static bool generation_page(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return false;
	if (madvise(page, 4096, MADV_WIPEONFORK) != 0) {
		munmap(page, 4096);
		return false;
	}
	recorder_generation = page;
	return true;
}

/* Forgets the state that a child inherited from its parent. */
static void forget_parent(void)
{
	self.forked = true;
	self.parent = recorder_process ? recorder_process->pid : (uint32_t)getppid();
	if (self.socket >= 0)
		process_hang_up();
	threads_forget();
	watcher_forget();
	texts_forget();
	if (recorder_process)
		munmap(recorder_process, REGION_BYTES);
	if (descriptor_is(self.region, self.region_inode))
		close(self.region);
	descriptor_is_ours(self.region, false);
	open_status_ahead();
	recorder_process = self.place = NULL;
	self.region = self.socket = -1;
}

bool process_is_wanted(void)
{
	if (!self.wanted)
		return false;
	return !recorder_process || !*recorder_generation ||
	       atomic_load_explicit(&recorder_process->state, memory_order_relaxed) == RING_RUN;
}

/* A child's first record may be in the handler of a signal on a small stack, of which this needs more than there is: the
 * calls are made on a stack of the recorder's own, by one thread at a time. */
#define STACK_BYTES ((size_t)128 << 10)
static char *stack;

static bool on_own_stack(bool (*work)(void))
{
#if defined(__x86_64__)
	long result;

	__asm__ volatile("mov %%rsp, %%rbx\n"
			 "	mov %1, %%rsp\n"
			 "	call *%2\n"
			 "	mov %%rbx, %%rsp\n"
			 : "=&a"(result)
			 : "r"(stack + STACK_BYTES), "r"(work)
			 : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc",
			   "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
			   "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	return result & 0xff;
#else
	return work();
#endif
}

/* A child that the C library did not fork (clone) has no thread of the recorder: its function ends only its own thread, and the
 * C library would end the process with another status, and run the parent's exit handlers, when the recorder's thread ends. */
static bool prepare_first(void)
{
	bool child = self.generation && recorder_process;

	if (child && child_is_filtered())
		return false;
	if (child)
		forget_parent();
	if (!region_new())
		return false;
	process_reconnect();
	*recorder_generation = ++self.generation;
	threads_provide(1);
	if (child && self.fork_pid != recorder_process->pid)
		watcher_ban();
	if (self.forked && watcher_is_wanted())
		watcher_start();
	return true;
}

/* A thread that comes while another one is at it goes without: its next record will find all ready. In a child this is
 * the only place where a hook makes system calls: most children execute something before they record, and there is no
 * other thread that could. */
bool process_prepare(void)
{
	uint32_t none = 0;
	int cancel;

	if (LIKELY(*recorder_generation))
		return true;
	if (!self.wanted || !atomic_compare_exchange_strong(&self.preparing, &none, 1))
		return false;
	/* calls such as close() are cancellation points, and the program has not made them */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	self.wanted = on_own_stack(prepare_first);
	pthread_setcancelstate(cancel, NULL);
	atomic_store(&self.preparing, 0);
	return self.wanted;
}

/* In a child. The lock may be a parent's thread's. A child may put itself under a filter before its first record, so what
 * shows that is opened here; where the program's code has such a call, all that a record needs is. */
static void after_fork(void)
{
	int error = errno;

	atomic_store(&self.preparing, 0);
	recorder_thread = NULL;
	recorder_busy = BUSY_OURS;
	self.fork_pid = (uint32_t)getpid();
	if (self.wanted && recorder_process) {
		open_status_of_child();
		if (self.raw & RAW_FILTER)
			process_prepare();
	}
	recorder_busy = 0;
	errno = error;
}

static void begin_anew(void)
{
	texts_forget();
	recorder_process = NULL;
	self.forked = false;
	*recorder_generation = 0;
}

void hook_report(enum ring_hook hook, enum ring_hook_state state, const char *text)
{
	struct ring_process *process = recorder_process;

	if (!process) /* no collector is connected now */
		return;
	if (text)
		atomic_store(&process->hooks[hook].text, text_of(text));
	atomic_store(&process->hooks[hook].state, state);
}

bool process_is_cut_off(void)
{
	return self.region >= 0 && !descriptor_is(self.region, self.region_inode) &&
	       self.renewed < RENEWALS;
}

/* Makes a new region and connection. The collector keeps the records that it has; it treats the closed connection as
 * the end. A copy of the region replaces the one that can no longer be passed on; threads see that they belong to
 * another generation, and make new rings.
 */
bool process_renew(void)
{
	size_t used = RING_TEXT_OFFSET + (size_t)atomic_load(&recorder_process->text_used) * 8;
	struct ring_process *copy = region_memory(NULL);

	self.renewed++;
	if (!copy)
		return false;
	memcpy(copy, recorder_process, used < REGION_BYTES ? used : REGION_BYTES);
	if (mmap(recorder_process, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 self.region, 0) == MAP_FAILED)
		return false;
	munmap(copy, REGION_BYTES);
	threads_give_up(true);
	*recorder_generation = ++self.generation;
	return process_reconnect();
}

void process_retire(void)
{
	self.wanted = false;
	if (*recorder_generation)
		*recorder_generation = ++self.generation;
	threads_count_none();
}

/* Stops recording: threads see another generation and record nothing. */
void process_stop(void)
{
	self.wanted = false;
	*recorder_generation = ++self.generation;
	threads_give_up(false);
	if (descriptor_is(self.region, self.region_inode))
		close(self.region);
	descriptor_is_ours(self.region, false);
	self.region = -1;
	close_status();
	process_hang_up(); /* last, because the collector takes it as the end */
}

/* Handles a killed collector when another one connects: the watcher removes the hooks as if the first one
 * had asked. */
static void leave_lost_collector(void)
{
	if (!self.wanted || !*recorder_generation || !watcher_is_there() || process_is_connected())
		return;
	atomic_store(&recorder_process->state, RING_STOP);
	watcher_wake();
	for (int i = 0; i < 5000 && self.wanted; i++)
		nanosleep(&(struct timespec){ 0, 100000 }, NULL);
}

/* Starts the recorder. A stopped recorder reuses its memory, because a thread may still be about to read
 * it. */
int recorder_start(const char *socket_path, uint32_t version)
{
	uint32_t found;

	if (version != RING_VERSION) {
		process_refuse(socket_path, RING_OTHER_VERSION);
		return 1;
	}
	leave_lost_collector();
	for (int i = 0; i < 1000 && !self.wanted && watcher_is_there(); i++)
		nanosleep(&(struct timespec){ 0, 100000 }, NULL); /* the process is about to end */
	if (watcher_is_there() || (self.wanted && *recorder_generation))
		return 5; /* another collector is recording */
	if (strlen(socket_path) >= sizeof(self.socket_path))
		return 2;
	snprintf(self.socket_path, sizeof(self.socket_path), "%s", socket_path);
	if (!has_room_below(RLIMIT_AS) || !has_room_below(RLIMIT_DATA)) {
		process_refuse(socket_path, RING_NO_MEMORY);
		return 4;
	}
	if (!texts_begin() || !descriptors_begin() || !patches_begin() ||
	    !table_ensure(&stack, STACK_BYTES) || (!self.generation && !generation_page()))
		return 3;
	if (!self.generation)
		pthread_atfork(watcher_pause, NULL, after_fork);
	if (self.generation)
		begin_anew();
	self.wanted = true;
	clock_begin();
	threads_begin();
	open_status_ahead();
	descriptors_look(true);
	if (!process_prepare())
		return 4;
	found = self.raw = raw_calls();
	if (found & RAW_NO_THREAD)
		watcher_ban();
	if (descriptor_limit() >= LEAST_LIMIT && !(found & RAW_STRICT))
		return 0;
	hook_report(RING_HOOK_FILES, RING_HOOK_UNKNOWN,
		    found & RAW_STRICT ? STRICT : FEW_DESCRIPTORS);
	process_stop();
	return found & RAW_STRICT ? 8 : 7;
}
