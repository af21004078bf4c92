/*
 * pseudonym.c: replaces the words of names and paths with pseudonyms from a keyed hash (SipHash-2-4). model/redact.c
 * and merge/redact_text.c call it. The key is random for each profile and never stored, so pseudonyms of two of them cannot be compared, unless
 * they were opened for a comparison (pseudonyms_share). It does not decide which strings are private: they do.
 */
#include "base/pseudonym.h"

#include "base/vec.h"

#include <errno.h>
#include <pthread.h>
#include <sys/random.h>

#define HEX_DIGITS 7 /* length of a hash; one digit is added while the hash is taken */

/* Words of frameworks, which are not private. None may end in _<digits> or _grad, because those
 * endings are cut off first. */
static const char *const common_words[] = {
	"gradients",
	"BatchNorm",
	"batch_normalization",
	"batch_norm",
	"batchnorm",
	"FusedBatchNorm",
	"conv",
	"conv1d",
	"conv2d",
	"conv3d",
	"dense",
	"dropout",
	"flatten",
	"embedding",
	"lstm",
	"gru",
	"rnn",
	"pool",
	"max_pooling2d",
	"average_pooling2d",
	"max_pool",
	"avg_pool",
	"logits",
	"loss",
	"losses",
	"softmax",
	"relu",
	"Relu",
	"kernel",
	"bias",
	"biases",
	"weights",
	"beta",
	"gamma",
	"moving_mean",
	"moving_variance",
	"global_step",
	"read",
	"Assign",
	"Initializer",
	"initializer",
	"init",
	"zeros",
	"ones",
	"random_uniform",
	"random_normal",
	"truncated_normal",
	"save",
	"train",
	"eval",
	"serve",
	"while",
	"cond",
	"Switch",
	"Merge",
	"Enter",
	"Exit",
	"NextIteration",
	"control_dependency",
	"Adam",
	"Momentum",
	"GradientDescent",
	"RMSProp",
	"learning_rate",
	"input",
	"inputs",
	"output",
	"outputs",
	"labels",
	"images",
	"Const",
	"Variable",
	"Placeholder",
	"_SOURCE",
	"_SINK",
	"_TFProfRoot",
	"RecvTensor",
	"_checkpoint_variables",
	"_trainable_variables",
	"<module>",
	"<lambda>",
	"<listcomp>",
	"<genexpr>",
	"__init__",
	"__call__",
	"__enter__",
	"__exit__",
	"main",
	"cpu_op",
	"kernels",
	"gpu_memcpy",
	"gpu_memset",
	"cuda_runtime",
	"user_annotation",
	"python_function",
	"Op",
};

static const char *const extensions[] = {
	"pb",  "pbtxt", "json",	 "jsonl", "gz",	    "zst",	 "meta",   "index", "txt", "csv",
	"log", "trace", "proto", "pprof", "folded", "collapsed", "sqlite", "db",    "py",  "pyc",
	"pyx", "ipynb", "c",	 "cc",	  "cpp",    "cu",	 "h",	   "hpp",   "so",  "java",
	"go",  "rs",	"js",	 "ts",	  "scala",  "jl",	 "R",
};

static uint64_t rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

static void sip_block(uint64_t v[4], uint64_t block)
{
	v[3] ^= block;
	sip_round(v);
	sip_round(v);
	v[0] ^= block;
}

static uint64_t sip_hash(const uint64_t key[2], struct str s)
{
	uint64_t v[4] = { key[0] ^ 0x736f6d6570736575ull, key[1] ^ 0x646f72616e646f6dull,
			  key[0] ^ 0x6c7967656e657261ull, key[1] ^ 0x7465646279746573ull };
	uint64_t block;
	size_t i = 0;

	for (; i + 8 <= s.len; i += 8) {
		memcpy(&block, s.ptr + i, 8);
		sip_block(v, block);
	}
	block = (uint64_t)s.len << 56;
	for (size_t k = i; k < s.len; k++)
		block |= (uint64_t)(unsigned char)s.ptr[k] << (8 * (k - i));
	sip_block(v, block);
	v[2] ^= 0xff;
	for (int round = 0; round < 4; round++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static ow_status draw_key(uint64_t key[2], struct ow_error *err)
{
	char *at = (char *)key;
	size_t left = 2 * sizeof(*key);

	while (left) {
		ssize_t got = getrandom(at, left, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return error_errno(err, errno, "random bytes for hiding names");
		at += got;
		left -= (size_t)got;
	}
	return OW_OK;
}

ow_status pseudonyms_init(struct pseudonyms *p, struct mem *mem, struct ow_error *err)
{
	memset(p, 0, sizeof(*p));
	arena_init(&p->arena, mem);
	map_init(&p->words, mem);
	map_init(&p->given, mem);
	OW_TRY(draw_key(p->key, err));
	for (size_t i = 0; i < ARRAY_COUNT(common_words); i++)
		pseudonym_keep(p, str_from(common_words[i]));
	return p->failed ? error_no_memory(err) : OW_OK;
}

ow_status pseudonyms_share(struct pseudonyms *p, struct ow_error *err)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t drawn[2]; /* key of this process; set once, under the lock */
	static bool known;
	ow_status status = OW_OK;

	pthread_mutex_lock(&lock);
	if (!known)
		status = draw_key(drawn, err);
	known = status == OW_OK;
	memcpy(p->key, drawn, sizeof(drawn));
	pthread_mutex_unlock(&lock);
	return status;
}

void pseudonyms_release(struct pseudonyms *p)
{
	mem_free(p->arena.mem, p->items, p->cap * sizeof(*p->items));
	map_release(&p->words);
	map_release(&p->given);
	arena_release(&p->arena);
}

static struct pseudonym_word *find_word(const struct pseudonyms *p, struct str word, uint64_t hash)
{
	for (struct map_iter it = map_find(&p->words, hash); it.value; it = map_next(&p->words, it))
		if (str_eq(p->items[it.value].word, word))
			return &p->items[it.value];
	return NULL;
}

static bool is_given(const struct pseudonyms *p, struct str pseudonym)
{
	for (struct map_iter it = map_find(&p->given, str_hash(pseudonym)); it.value;
	     it = map_next(&p->given, it))
		if (str_eq(p->items[it.value].stands_for_it, pseudonym))
			return true;
	return false;
}

static struct pseudonym_word *add_word(struct pseudonyms *p, struct str word, uint64_t hash,
				       struct str pseudonym)
{
	size_t at = MAX(p->count, (size_t)1);
	struct pseudonym_word item = { .word = arena_str(&p->arena, word) };

	item.stands_for_it = pseudonym.ptr ? arena_str(&p->arena, pseudonym) : item.word;
	if (!item.word.ptr || !item.stands_for_it.ptr || at >= UINT32_MAX ||
	    !vec_reserve(p->arena.mem, p->items, p->cap, at + 1)) {
		p->failed = true;
		return NULL;
	}
	p->items[at] = item;
	p->count = at + 1;
	if (!map_add(&p->words, hash, (uint32_t)at) ||
	    !map_add(&p->given, str_hash(item.stands_for_it), (uint32_t)at)) {
		p->failed = true;
		return NULL;
	}
	return &p->items[at];
}

void pseudonym_keep(struct pseudonyms *p, struct str word)
{
	uint64_t hash = str_hash(word);

	if (!p->failed && !find_word(p, word, hash))
		add_word(p, word, hash, (struct str){ NULL, 0 });
}

bool pseudonym_known(const struct pseudonyms *p, struct str word)
{
	const struct pseudonym_word *item = find_word(p, word, str_hash(word));

	return item && item->word.ptr != item->stands_for_it.ptr;
}

static struct pseudonym_word *new_word(struct pseudonyms *p, struct str word, uint64_t hash)
{
	uint64_t bits = sip_hash(p->key, word);
	char text[24];
	struct str pseudonym = { text, 1 + HEX_DIGITS };

	snprintf(text, sizeof(text), "n%016" PRIx64, bits);
	while (pseudonym.len < 17 && is_given(p, pseudonym))
		pseudonym.len++;
	return add_word(p, word, hash, pseudonym);
}

void pseudonym_word(struct pseudonyms *p, struct str word, struct buf *out)
{
	uint64_t hash = str_hash(word);
	const struct pseudonym_word *item;

	if (!word.len || p->failed)
		return;
	item = find_word(p, word, hash);
	if (!item)
		item = new_word(p, word, hash);
	if (item)
		buf_add_str(out, item->stands_for_it);
}

/* Also hides words that are kept elsewhere: in a path, "train" is the user's. A separator in front, which no
 * component has, keeps the two apart. */
static void hidden_word(struct pseudonyms *p, struct str word, struct buf *out)
{
	const struct pseudonym_word *item = find_word(p, word, str_hash(word));
	char *marked;

	if (!item || item->word.ptr != item->stands_for_it.ptr) {
		pseudonym_word(p, word, out);
		return;
	}
	marked = arena_printf(&p->arena, "/%.*s", STR_ARG(word));
	if (marked)
		pseudonym_word(p, str_from(marked), out);
	else
		p->failed = true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns the length of the name before endings such as _1, _grad, _grad_2, _1_grad. */
static size_t stem_length(struct str s)
{
	for (;;) {
		size_t digits = s.len;

		while (digits && is_digit(s.ptr[digits - 1]))
			digits--;
		if (digits < s.len && digits && s.ptr[digits - 1] == '_')
			s.len = digits - 1;
		else if (str_ends(s, STR("_grad")))
			s.len -= 5;
		else
			return s.len;
	}
}

static void add_component(struct pseudonyms *p, struct str component, struct buf *out)
{
	size_t stem = stem_length(component);
	struct str word = str_first(component, stem);
	struct str suffix = STR("gradients");

	/* tfprof searches for "gradients/" anywhere in a name, so this text must stay */
	if (word.len > suffix.len && str_ends(word, suffix)) {
		pseudonym_word(p, str_first(word, word.len - suffix.len), out);
		buf_add_str(out, suffix);
	} else {
		pseudonym_word(p, word, out);
	}
	buf_add_str(out, str_skip(component, stem));
}

void pseudonym_name(struct pseudonyms *p, struct str name, struct buf *out)
{
	struct str rest = name, component;
	bool first = true;

	while (str_split(&rest, '/', &component)) {
		if (!first)
			buf_add_char(out, '/');
		first = false;
		add_component(p, component, out);
	}
}

static bool is_usual(struct str extension)
{
	for (size_t i = 0; i < ARRAY_COUNT(extensions); i++)
		if (str_eq(extension, str_from(extensions[i])))
			return true;
	return false;
}

/* Adds a file name. Its extension may have two parts, as .json.gz. */
static void add_file(struct pseudonyms *p, struct str name, struct buf *out)
{
	size_t stem = name.len, dot;

	while ((dot = str_rfind_char(str_first(name, stem), '.')) != STR_NONE && dot > 0 &&
	       is_usual(str_skip(str_first(name, stem), dot + 1)))
		stem = dot;
	hidden_word(p, str_first(name, stem), out);
	buf_add_str(out, str_skip(name, stem));
}

static size_t last_separator(struct str path)
{
	for (size_t i = path.len; i-- > 0;)
		if (path.ptr[i] == '/' || path.ptr[i] == '\\')
			return i;
	return STR_NONE;
}

void pseudonym_file(struct pseudonyms *p, struct str path, struct buf *out)
{
	size_t at = last_separator(path);

	add_file(p, at == STR_NONE ? path : str_skip(path, at + 1), out);
}

void pseudonym_path(struct pseudonyms *p, struct str path, struct buf *out)
{
	size_t end = last_separator(path), begin = 0;

	for (size_t i = 0; end != STR_NONE && i <= end; i++) {
		if (path.ptr[i] != '/' && path.ptr[i] != '\\')
			continue;
		hidden_word(p, str_make(path.ptr + begin, i - begin), out);
		buf_add_char(out, path.ptr[i]);
		begin = i + 1;
	}
	pseudonym_file(p, path, out);
}

/* Whether a text is a parameter list of an NCCL kernel, (ncclDevComm*, unsigned long, ncclWork*). Texts of users may
 * be in parentheses, too. */
static bool is_library_signature(struct str text)
{
	static const char *const types[] = { "unsigned", "long", "int",	  "char",
					     "const",	 "void", "struct" };
	struct str word;

	if (!str_ends(text, STR(")")))
		return false;
	text = str_make(text.ptr + 1, text.len - 2);
	while (str_split(&text, ' ', &word)) {
		bool known = str_starts(word, STR("nccl"));

		while (word.len && strchr(",*&", word.ptr[word.len - 1]))
			word.len--;
		for (size_t i = 0; i < ARRAY_COUNT(types); i++)
			known |= str_eq(word, str_from(types[i]));
		if (!known)
			return false;
	}
	return true;
}

/* Whether a name is a library call (cudaLaunchKernel, hipMalloc, ncclDevKernel): a known prefix and then a capital
 * letter; a user's cuda_layer is not. */
static bool is_library_call(struct str name)
{
	static const char *const prefixes[] = { "cuda", "cu", "hip", "nccl" };

	size_t open = str_find_char(name, '(');

	if (open != STR_NONE && is_library_signature(str_skip(name, open)))
		name = str_first(name, open);
	for (size_t i = 0; i < ARRAY_COUNT(prefixes); i++) {
		struct str rest = str_skip(name, strlen(prefixes[i]));

		if (str_starts(name, str_from(prefixes[i])) && rest.len && rest.ptr[0] >= 'A' &&
		    rest.ptr[0] <= 'Z')
			return str_find_char(name, ' ') == STR_NONE;
	}
	return false;
}

bool pseudonym_is_library_name(struct str name)
{
	static const char *const beginnings[] = { "aten::", "c10::",	    "c10d::",  "void at::",
						  "at::",   "autograd::",   "Memcpy ", "Memset ",
						  "gloo:",  "ProfilerStep#" };
	static const char *const whole[] = {
		"process_name",
		"process_labels",
		"process_sort_index",
		"thread_name",
		"thread_sort_index",
		"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
		"enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
		"[memory]"
	};

	for (size_t i = 0; i < ARRAY_COUNT(whole); i++)
		if (str_eq(name, str_from(whole[i])))
			return true;
	for (size_t i = 0; i < ARRAY_COUNT(beginnings); i++)
		if (str_starts(name, str_from(beginnings[i])))
			return true;
	return is_library_call(name);
}
