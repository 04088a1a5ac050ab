/* c10's reporters of memory, with the names and arguments that PyTorch's library gives them, and bodies that a
 * compiler does not remove. */
#include <stddef.h>
#include <stdint.h>

volatile uint64_t standin_calls;

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
