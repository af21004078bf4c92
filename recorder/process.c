/*
 * process.c: the process as the collector sees it: its region of shared memory, the connection over which regions
 * and rings are handed over, and what happens after a fork. The collector is found through the environment, or is
 * given by whoever attached.
 */
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
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
#define REGION_BYTES ((size_t)RING_TEXT_OFFSET + RING_TEXT_BYTES)
#define RENEWALS 16u /* a program that closes them time and again does not want them */

struct ring_process *recorder_process;

/* A page that reads as zero in children: whatever way they were forked, they see that they are children. */
static volatile uint32_t nothing;
volatile uint32_t *recorder_generation = &nothing;

static struct {
	char socket_path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	_Atomic uint32_t preparing;
	uint32_t generation; /* of this process, or of its parent in a child that is not prepared */
	bool wanted, forked;
	int socket, region;
	uint64_t socket_inode, region_inode;
	struct ring_process *place; /* of the region that there was before */
	uint32_t parent, renewed;
} self = { .socket = -1, .region = -1 };

/* ---- descriptors ---- */

/* Out of the way of programs that count on low numbers. */
static int move_high(int fd)
{
	int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);

	if (high < 0)
		return fd;
	close(fd);
	return high;
}

static uint64_t inode_of(int fd)
{
	struct stat st;
	int error = errno;
	uint64_t inode = fstat(fd, &st) == 0 ? (uint64_t)st.st_ino : 0;

	errno = error;
	return inode;
}

bool descriptor_is(int fd, uint64_t inode)
{
	return fd >= 0 && inode && inode_of(fd) == inode;
}

/* A limit on the size of files counts for memory files, too, and going beyond it is deadly. */
static bool is_allowed(size_t size)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
	       (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= size);
}

void *memory_new(const char *name, size_t size, void *at, int *fd, uint64_t *inode)
{
	void *memory;

	*fd = !is_allowed(size) ? -1
				: move_high(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
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
	*inode = inode_of(*fd);
	return memory;
}

/* ---- messages ---- */

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
	/* Not the C library's function, at which threads may be cancelled. */
	sent = syscall(SYS_sendmsg, socket, &packet, MSG_DONTWAIT | MSG_NOSIGNAL) ==
	       (long)sizeof(message);
	errno = error;
	return sent;
}

bool process_is_connected(void)
{
	char byte;

	if (!descriptor_is(self.socket, self.socket_inode))
		return false;
	return recv(self.socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK) != 0;
}

bool process_send(enum ring_message_kind kind, uint32_t number, int fd)
{
	return descriptor_is(self.socket, self.socket_inode) &&
	       send_message(self.socket, kind, number, fd);
}

static int dial(const char *path)
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
	return move_high(fd);
}

void process_hang_up(void)
{
	if (descriptor_is(self.socket, self.socket_inode))
		close(self.socket);
	self.socket = -1;
}

/* The region goes first; rings follow. */
bool process_reconnect(void)
{
	process_hang_up();
	if (!descriptor_is(self.region, self.region_inode))
		return false;
	self.socket = dial(self.socket_path);
	self.socket_inode = self.socket < 0 ? 0 : inode_of(self.socket);
	return process_send(RING_HELLO, 0, self.region);
}

void process_refuse(const char *socket_path)
{
	int fd = dial(socket_path);

	if (fd < 0)
		return;
	send_message(fd, RING_REFUSAL, 0, -1);
	close(fd);
}

/* ---- who the process is ---- */

static uint32_t command_text(void)
{
	char text[RING_TEXT_MAX];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (fd >= 0)
		close(fd);
	return len > 0 ? text_number(text, (size_t)len) : 0;
}

/* Nothing else of the environment is looked at. */
static uint32_t identity_text(void)
{
	static const char *const names[] = {
		"RANK",		 "LOCAL_RANK",	  "WORLD_SIZE",		  "MASTER_ADDR",
		"MASTER_PORT",	 "SLURM_JOB_ID",  "SLURM_PROCID",	  "SLURM_NTASKS",
		"SLURM_LOCALID", "SLURM_STEP_ID", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
		"PMI_RANK",	 "PMI_SIZE",	  "OPWATCH_JOB",
	};
	char text[RING_TEXT_MAX];
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
	return memory_new("opwatch-process", REGION_BYTES, at, &self.region, &self.region_inode);
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

/* ---- forks ---- */

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

/* What a child inherited is its parent's. */
static void forget_parent(void)
{
	self.forked = true;
	self.parent = recorder_process ? recorder_process->pid : (uint32_t)getppid();
	if (self.socket >= 0)
		process_hang_up();
	threads_forget();
	texts_forget();
	if (recorder_process)
		munmap(recorder_process, REGION_BYTES);
	if (descriptor_is(self.region, self.region_inode))
		close(self.region);
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

/* A thread that comes while another one is at it goes without: its next record will find all ready. */
bool process_prepare(void)
{
	uint32_t none = 0;
	bool good;

	if (LIKELY(*recorder_generation))
		return true;
	if (!self.wanted || !atomic_compare_exchange_strong(&self.preparing, &none, 1))
		return false;
	if (self.generation && recorder_process)
		forget_parent();
	good = region_new();
	if (good) {
		process_reconnect();
		*recorder_generation = ++self.generation;
		if (self.forked)
			watcher_start();
	} else {
		self.wanted = false;
	}
	atomic_store(&self.preparing, 0);
	return good;
}

/* The lock may be a parent's thread's. */
static void after_fork(void)
{
	atomic_store(&self.preparing, 0);
	recorder_thread = NULL;
	recorder_busy = 0;
}

static void begin_anew(void)
{
	texts_forget();
	recorder_process = NULL;
	self.forked = false;
	*recorder_generation = 0;
}

void hook_tell(enum ring_hook hook, enum ring_hook_state state, const char *text)
{
	struct ring_hook_info *info = &recorder_process->hooks[hook];

	if (text)
		atomic_store(&info->text, text_of(text));
	atomic_store(&info->state, state);
}

bool process_is_cut_off(void)
{
	return self.region >= 0 && !descriptor_is(self.region, self.region_inode) &&
	       self.renewed < RENEWALS;
}

/* What the collector has got stays its own, but it takes a connection that is closed for the end. A copy of the region
 * takes the place of the one that nobody can be given any more; threads find that they are of another generation, and
 * make other rings. */
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
}

/* Threads find that they are of another generation, and that nothing is wanted of them. */
void process_stop(void)
{
	self.wanted = false;
	*recorder_generation = ++self.generation;
	threads_give_up(false);
	if (descriptor_is(self.region, self.region_inode))
		close(self.region);
	self.region = -1;
	process_hang_up(); /* last: whoever listens takes it for the end */
}

/* A stopped recorder begins anew, in the memory that it had before: a thread may still be about to look at that. */
int recorder_start(const char *socket_path, uint32_t version)
{
	if (version != RING_VERSION) {
		process_refuse(socket_path);
		return 1;
	}
	for (int i = 0; i < 1000 && !self.wanted && watcher_is_there(); i++)
		nanosleep(&(struct timespec){ 0, 100000 }, NULL); /* it is about to end */
	if (watcher_is_there() || (self.wanted && *recorder_generation))
		return 5; /* somebody else records */
	if (strlen(socket_path) >= sizeof(self.socket_path))
		return 2;
	snprintf(self.socket_path, sizeof(self.socket_path), "%s", socket_path);
	if (!self.generation && !generation_page())
		return 3;
	if (!self.generation)
		pthread_atfork(watcher_pause, NULL, after_fork);
	if (self.generation)
		begin_anew();
	self.wanted = true;
	clock_begin();
	if (!process_prepare())
		return 4;
	watcher_start();
	return 0;
}
