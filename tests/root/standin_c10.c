/* c10's reporters of memory, with the names and arguments that PyTorch's library gives them, and bodies that a
 * compiler does not remove. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

volatile uint64_t standin_calls;

/* Through pointers, which compilers do not look behind. */
void *copy(void **to, void *const *from,
	   _Bool beside) __asm__("_ZN2at6native5copy_ERNS_6TensorERKS1_b");
static void *(*volatile standin_copy_of)(void **, void *const *, _Bool) = copy;
static void *(*volatile standin_move)(void *, const void *, size_t) = memmove;
static volatile int standin_moves;
static char *standin_to, *standin_from;
static size_t standin_bytes;

__attribute__((noinline)) static void called(void)
{
	standin_calls++;
}

void cpu_new(void *reporter, void *block,
	     size_t bytes) __asm__("_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm");
void cpu_new(void *reporter, void *block, size_t bytes)
{
	called();
	called();
}

void cpu_delete(void *reporter,
		void *block) __asm__("_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv");
void cpu_delete(void *reporter, void *block)
{
	called();
	called();
}

void device_changed(
	void *block, int64_t bytes, size_t allocated, size_t reserved,
	uint16_t device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void device_changed(void *block, int64_t bytes, size_t allocated, size_t reserved, uint16_t device)
{
	called();
	called();
}

void device_full(int64_t bytes, size_t allocated, size_t reserved,
		 uint16_t device) __asm__("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");
void device_full(int64_t bytes, size_t allocated, size_t reserved, uint16_t device)
{
	called();
	called();
}

/* ---- copies ---- */

void *copy(void **to, void *const *from, _Bool beside)
{
	called();
	called();
	if (standin_moves)
		standin_move(standin_to, standin_from, standin_bytes);
	return to;
}

/* What c10::TensorImpl has of a tensor of floats, in PyTorch 1.13 (old) and 2.15. */
struct standin_tensor {
	uint64_t words[32];
	uint64_t storage[8];
	int64_t sizes[2 * 8];
};

static void fill_tensor(struct standin_tensor *tensor, int old, int device, unsigned int dimensions,
			const int64_t *sizes, void *data)
{
	unsigned int elements = old ? 21 : 19, head = old ? 3 : 2;
	unsigned char *after = (unsigned char *)&tensor->words[elements + 1];
	int64_t count = 1;

	memset(tensor, 0xa5, sizeof(*tensor));
	for (unsigned int i = 0; i < dimensions; i++) {
		count *= sizes[i];
		tensor->sizes[i] = sizes[i];
		if (dimensions <= 5)
			tensor->words[elements - 11 + i] = (uint64_t)sizes[i];
	}
	if (dimensions > 5)
		tensor->words[elements - 11] = (uint64_t)tensor->sizes;
	tensor->words[elements - 12] = dimensions;
	tensor->words[elements - 1] = 0; /* its offset in the storage */
	tensor->words[elements] = (uint64_t)count;
	tensor->words[head] = (uint64_t)tensor->storage;
	tensor->storage[head] = (uint64_t)data;
	after[0] = 6; /* float */
	after[1] = 0;
	after[2] = old ? 1 : device;
	after[3] = old ? device : 0xff;
	after[4] = old ? 0xff : 1;
}

/* Copies one tensor to another; moved: bytes that the function copies by memmove, from `first` bytes on. device:
 * c10::DeviceType. */
void standin_copy(int old, int device, unsigned int dimensions, const int64_t *sizes, char *to,
		  char *from, size_t first, size_t moved)
{
	struct standin_tensor target, source;
	void *target_of = &target, *source_of = &source;

	fill_tensor(&target, old, device, dimensions, sizes, to);
	fill_tensor(&source, old, 0, dimensions, sizes, from);
	standin_moves = moved != 0;
	standin_to = to + first;
	standin_from = from + first;
	standin_bytes = moved;
	standin_copy_of(&target_of, &source_of, 0);
	standin_moves = 0;
}

/* The same object, which copies nothing. */
void standin_copy_itself(int64_t size, char *to)
{
	struct standin_tensor target;
	void *target_of = &target, *source_of = &target;

	fill_tensor(&target, 0, 0, 1, &size, to);
	standin_copy_of(&target_of, &source_of, 0);
}

/* What is no tensor at all. */
void standin_copy_unknown(void)
{
	static uint64_t target[64], source[64] = {1};
	void *target_of = target, *source_of = source;

	memset(target, 0x5a, sizeof(target));
	standin_copy_of(&target_of, &source_of, 0);
}

void standin_memmove(char *to, char *from, size_t bytes)
{
	standin_move(to, from, bytes);
}
