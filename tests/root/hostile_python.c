/* What takes itself for CPython 3.12 and is not: its symbols and the layout of its memory are
 * those that samplers go by, and each of its threads has frames of a kind that no interpreter
 * has. usage: hostile_python [endless-list | KIND]; with KIND only that thread is there
 *
 * Says {"ready": PID, "threads": {kind: TID, ...}}; after a line on stdin, how often each thread
 * came round meanwhile, and ends. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* ---- the parts of CPython 3.12, x86-64 ---- */

struct object {
	uint64_t references;
	const void *type;
};

struct text {
	struct object head;
	int64_t length, hash;
	uint32_t state, padding; /* interned 2, kind 3, compact 1, ascii 1 */
	char characters[56];
};
_Static_assert(offsetof(struct text, characters) == 40, "str");
#define ASCII (1U << 2 | 1U << 5 | 1U << 6)

struct bytes {
	struct object head;
	int64_t size, hash;
	unsigned char data[32];
};
_Static_assert(offsetof(struct bytes, data) == 32, "bytes");

struct code {
	struct object head;
	char unused[52];
	int32_t first_line;
	char unused_too[40];
	const struct text *file, *name, *qualified_name;
	const struct bytes *lines;
	char and_more[48];
	uint16_t instructions[8];
};
_Static_assert(offsetof(struct code, first_line) == 68, "code");
_Static_assert(offsetof(struct code, file) == 112, "code");
_Static_assert(offsetof(struct code, instructions) == 192, "code");

struct frame {
	const struct code *code;
	const struct frame *back;
	char unused[40];
	const void *instruction;
	char unused_too[6];
	uint8_t owner, padding;
};
_Static_assert(offsetof(struct frame, instruction) == 56 && offsetof(struct frame, owner) == 70,
	       "frame");

struct c_frame {
	const struct frame *frame;
	const struct c_frame *back;
};

struct state {
	void *previous;
	struct state *next;
	char unused[40];
	const struct c_frame *c_frame;
	char unused_too[72];
	uint64_t thread_id;
};
_Static_assert(offsetof(struct state, c_frame) == 56 && offsetof(struct state, thread_id) == 136,
	       "state");

const unsigned long Py_Version = 0x030c01f0; /* 3.12.1 */
const char PyCode_Type[64] = "a type";
struct state *main_state[10]; /* an interpreter: its threads at 72 */
struct {
	char unused[40];
	void *interpreter;
} _PyRuntime;

/* ---- honest code, which all kinds but the random ones are made of ---- */

static struct text file_name = {{1, NULL}, 10, 0, ASCII, 0, "hostile.py"};
static const struct bytes one_line = {{1, NULL}, 3, 0, {0x80 | 13 << 3 | 7, 0, 0}};

struct named {
	struct text name;
	struct code code;
};

static void name(struct named *named, const char *text, int line)
{
	*named = (struct named){.name = {{1, NULL}, (int64_t)strlen(text), 0, ASCII, 0, ""}};
	strcpy(named->name.characters, text);
	named->code = (struct code){.head = {1, PyCode_Type},
				    .first_line = line,
				    .file = &file_name,
				    .name = &named->name,
				    .qualified_name = &named->name,
				    .lines = &one_line};
}

static void *map(size_t size)
{
	void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return bytes == MAP_FAILED ? NULL : bytes;
}

#define SHIM 3
static const struct frame entry = {.owner = SHIM};

/* In back, or entered from C. */
static struct frame frame_of(const struct named *named, const struct frame *back)
{
	return (struct frame){.code = &named->code,
			      .back = back ? back : &entry,
			      .instruction = named->code.instructions};
}

/* ---- kinds of stacks: each makes one and says which frame is the innermost ---- */

#define DEEP 100000
#define ARENA_BYTES (1U << 16)

static const struct frame *sane(void)
{
	static struct named names[3];
	static struct frame frames[3];

	for (int i = 0; i < 3; i++) {
		name(&names[i], (const char *[]){"outer", "middle", "inner"}[i], 10 * (i + 1));
		frames[i] = frame_of(&names[i], i ? &frames[i - 1] : NULL);
	}
	return &frames[2];
}

static const struct frame *cycle(void)
{
	static struct named names[2];
	static struct frame frames[2];

	name(&names[0], "here", 1);
	name(&names[1], "there", 2);
	frames[0] = frame_of(&names[0], &frames[1]);
	frames[1] = frame_of(&names[1], &frames[0]);
	return frames;
}

static const struct frame *shims(void)
{
	static struct frame frame;

	frame = (struct frame){.back = &frame, .owner = SHIM};
	return &frame;
}

static const struct frame *deep(void)
{
	static struct named recursion;
	struct frame *frames = map(DEEP * sizeof(*frames));

	name(&recursion, "recursion", 5);
	for (int i = 0; i < DEEP; i++)
		frames[i] = frame_of(&recursion, i ? &frames[i - 1] : NULL);
	return &frames[DEEP - 1];
}

static const struct frame *nowhere(void)
{
	static struct named named;
	static struct frame frames[7];
	static const uint64_t places[] = {1,
					  0xfff,
					  0x7fffffffe000,
					  0x8000000000000000,
					  0xffff888000000000,
					  0xffffffffffffffff,
					  0xdeadbeef000};

	name(&named, "lost", 6);
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
		frames[i] = frame_of(&named, (const struct frame *)places[i]); /* NOLINT */
	return &frames[time(NULL) % 7];
}

/* Names that say they are longer than all memory, or of no kind that there is; line tables too. */
static const struct frame *names(void)
{
	static struct named named[6];
	static struct bytes endless = {.head = {1, NULL}, .size = INT64_MAX};
	static struct bytes negative = {.head = {1, NULL}, .size = -1};
	static struct frame frames[6];

	for (int i = 0; i < 6; i++) {
		name(&named[i], "nobody", i + 1);
		frames[i] = frame_of(&named[i], i ? &frames[i - 1] : NULL);
	}
	named[0].name.length = INT64_MAX;
	named[1].name.length = -1;
	named[2].name.state = 0xffffffff;
	memset(named[3].name.characters, 0xff, sizeof(named[3].name.characters));
	named[3].name.state = 1U << 2 | 1U << 5; /* not ASCII */
	named[4].code.lines = &endless;
	named[5].code.lines = &negative;
	return &frames[5];
}

/* As it is where C enters and has not filled in its frame: what another call has left. */
static const struct frame *unfilled(void)
{
	static struct named named;
	static struct frame last, caller;

	name(&named, "of another call", 7);
	caller = frame_of(&named, NULL);
	last = (struct frame){.back = &caller, .owner = SHIM};
	caller = frame_of(&named, &last);
	return &caller;
}

static uint64_t *arena;

/* Pointers into an arena that is full of them, and changes. */
static const struct frame *random_bytes(void)
{
	arena = map(ARENA_BYTES);
	return (const struct frame *)arena;
}

/* ---- threads ---- */

typedef const struct frame *make_stack(void);

static struct kind {
	const char *name;
	make_stack *make;
	pthread_t thread;
	atomic_int tid;
	struct state state;
	struct c_frame c_frame;
	atomic_ulong rounds;
} kinds[] = {
	{"sane", sane},           {"cycle", cycle},     {"shims", shims},
	{"deep", deep},           {"nowhere", nowhere}, {"names", names},
	{"random", random_bytes}, {"flickers", sane},   {"unfilled", unfilled},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static pthread_key_t key;
static uint64_t chance = 88172645463325252ULL;

static uint64_t draw(void)
{
	chance ^= chance << 13;
	chance ^= chance >> 7;
	return chance ^= chance << 17;
}

static void stir(void)
{
	for (int i = 0; i < 64; i++) {
		uint64_t at = draw() % (ARENA_BYTES / 8), drawn = draw();

		arena[at] = drawn % 3   ? (uintptr_t)arena + drawn % ARENA_BYTES
			    : drawn % 2 ? (uintptr_t)PyCode_Type
					: drawn;
	}
}

__attribute__((noinline)) void *_PyEval_EvalFrameDefault(struct kind *kind)
{
	for (;;) {
		for (volatile int i = 0; i < 1000; i++)
			;
		if (kind->make == random_bytes)
			stir();
		if (!strcmp(kind->name, "flickers")) /* its state comes and goes, and is none */
			pthread_setspecific(key, kind->rounds % 3 == 0   ? (void *)&kind->state
						 : kind->rounds % 3 == 1 ? (void *)(uintptr_t)draw()
									 : NULL);
		atomic_fetch_add(&kind->rounds, 1);
	}
	return NULL;
}

static void *run(void *context)
{
	struct kind *kind = context;

	static const struct c_frame first;

	kind->c_frame = (struct c_frame){kind->make(), &first};
	kind->state.c_frame = &kind->c_frame;
	kind->state.thread_id = (uint64_t)pthread_self();
	pthread_setspecific(key, &kind->state);
	kind->tid = gettid();
	return _PyEval_EvalFrameDefault(kind);
}

static void list_threads(int endless)
{
	struct state *last = NULL;

	for (size_t i = 0; i < KINDS; i++) {
		kinds[i].state.next = last;
		last = &kinds[i].state;
	}
	if (endless) {
		static struct state loop;

		loop.next = &loop;
		last = &loop;
	}
	main_state[9] = last;
	_PyRuntime.interpreter = main_state;
}

int main(int argc, char **argv)
{
	bool endless = argc > 1 && !strcmp(argv[1], "endless-list");
	const char *only = argc > 1 && !endless ? argv[1] : NULL, *comma = "";
	char line[64];

	pthread_key_create(&key, NULL);
	for (size_t i = 0; i < KINDS; i++)
		if (!only || !strcmp(only, kinds[i].name))
			pthread_create(&kinds[i].thread, NULL, run, &kinds[i]);
	for (size_t i = 0; i < KINDS; i++)
		while (kinds[i].thread && !kinds[i].tid)
			usleep(1000);
	list_threads(endless);
	printf("{\"ready\": %d, \"threads\": {", getpid());
	for (size_t i = 0; i < KINDS; i++)
		if (kinds[i].tid) {
			printf("%s\"%s\": %d", comma, kinds[i].name, kinds[i].tid);
			comma = ", ";
		}
	puts("}}");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	printf("{\"rounds\": {");
	for (size_t i = 0; i < KINDS; i++)
		printf("%s\"%s\": %lu", i ? ", " : "", kinds[i].name, kinds[i].rounds);
	puts("}}");
	fflush(stdout);
	return 0;
}
