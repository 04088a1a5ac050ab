#include "userspace/plan/memory_sites.h"

#include <fnmatch.h>
#include <string.h>

#include "userspace/machine_code/code.h"
#include "userspace/machine_code/decoder.h"
#include "userspace/plan/choice.h"

#define CODE_BYTES_MAX 65536 /* that may be read of a function to see where it jumps */

/* PyTorch's libraries, libpython, and programs that contain it. */
static const char *const libraries[] = {"*c10*", "libtorch_cpu*", "libpython*", "python*", "pypy*"};

/* Types of integers in the mangled names have changed: what begins so. */
static const struct reporter {
	const char *prefix;
	enum rls_memory_report report;
	bool whole; /* that is all of the name */
} reporters[] = {
	{"_ZN3c1025ProfiledCPUMemoryReporter3NewEPv", RLS_MEMORY_TENSOR_NEW, false},
	{"_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv", RLS_MEMORY_TENSOR_DELETE, false},
	{"_ZN3c1027reportMemoryUsageToProfilerEPv", RLS_MEMORY_DEVICE, false},
	{"_ZN3c1027reportOutOfMemoryToProfilerE", RLS_MEMORY_DEVICE_FULL, false},
	{"PyTraceMalloc_Track", RLS_MEMORY_TRACK, true},
	{"PyTraceMalloc_Untrack", RLS_MEMORY_UNTRACK, true},
	{"_ZN2at6native5copy_ERNS_6TensorERKS1_b", RLS_MEMORY_COPY_TENSOR, true},
	{"Py_FinalizeEx", RLS_MEMORY_FINALIZE, true},
	{"Py_Exit", RLS_MEMORY_EXIT, true},
};

struct finder {
	uint64_t vaddr[RLS_MEMORY_REPORT_MAX];
};

static int visit_symbol(const struct rls_elf_symbol *symbol, void *context)
{
	struct finder *finder = context;

	if (!symbol->defined || !symbol->exported || !symbol->function || symbol->indirect)
		return 0;
	for (size_t i = 0; i < sizeof(reporters) / sizeof(reporters[0]); i++) {
		const struct reporter *reporter = &reporters[i];

		if (!strncmp(symbol->name, reporter->prefix, strlen(reporter->prefix)) &&
		    (!reporter->whole || !symbol->name[strlen(reporter->prefix)]))
			finder->vaddr[reporter->report] = symbol->vaddr;
	}
	return 0;
}

/* The function's first instruction, if nothing less expensive will do. */
static int choose_instruction(struct rls_elf *elf, uint64_t vaddr, struct rls_instruction *out)
{
	const struct rls_elf_extent *extent = rls_elf_extent_at(elf, vaddr);
	uint64_t bytes_left = CODE_BYTES_MAX;
	struct rls_code code;
	int r = -1;

	if (extent && extent->vaddr == vaddr &&
	    !rls_code_read(elf, vaddr, extent->size_bytes, &bytes_left, &code)) {
		r = rls_choose_site(elf, &code, vaddr, NULL, out);
		rls_code_clear(&code);
	}
	if (!r && rls_choice_keeps_arguments(elf, vaddr, out->vaddr))
		return 0;
	r = rls_code_decode(elf, vaddr, out);
	if (!r && out->endbr && !rls_code_decode(elf, vaddr + out->length, out) && !out->probeable)
		r = rls_code_decode(elf, vaddr, out);
	return r < 0 || !out->probeable ? -1 : 0;
}

/* False: not to be probed. */
static bool add_site(struct rls_elf *elf, uint64_t vaddr, enum rls_memory_report report,
		     struct rls_memory_site *out)
{
	struct rls_instruction instruction;

	/* A symbol of that name may be anything. */
	if (!vaddr || !rls_elf_is_executable(elf, vaddr) ||
	    choose_instruction(elf, vaddr, &instruction) ||
	    rls_elf_file_offset(elf, instruction.vaddr, &out->file_offset) < 0)
		return false;
	out->report = report;
	out->site_class = instruction.site_class;
	return true;
}

/* Both, or none. */
static size_t add_pair(struct rls_elf *elf, const struct finder *finder,
		       enum rls_memory_report begins, enum rls_memory_report ends,
		       struct rls_memory_site *out)
{
	return add_site(elf, finder->vaddr[ends], ends, &out[0]) &&
			       add_site(elf, finder->vaddr[begins], begins, &out[1])
		       ? 2
		       : 0;
}

bool rls_memory_sites_library(const char *file_name)
{
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (!fnmatch(libraries[i], file_name, 0))
			return true;
	return false;
}

size_t rls_memory_sites(struct rls_elf *elf, struct rls_memory_site sites[RLS_MEMORY_SITES_MAX])
{
	struct finder finder = {0};
	size_t count;

	rls_elf_each_symbol(elf, visit_symbol, &finder);
	count = add_pair(elf, &finder, RLS_MEMORY_TENSOR_NEW, RLS_MEMORY_TENSOR_DELETE, sites);
	count += add_pair(elf, &finder, RLS_MEMORY_TRACK, RLS_MEMORY_UNTRACK, sites + count);
	count += add_site(elf, finder.vaddr[RLS_MEMORY_FINALIZE], RLS_MEMORY_FINALIZE,
			  &sites[count]);
	count += add_site(elf, finder.vaddr[RLS_MEMORY_EXIT], RLS_MEMORY_EXIT, &sites[count]);
	count += add_site(elf, finder.vaddr[RLS_MEMORY_COPY_TENSOR], RLS_MEMORY_COPY_TENSOR,
			  &sites[count]);
	if (!add_site(elf, finder.vaddr[RLS_MEMORY_DEVICE], RLS_MEMORY_DEVICE, &sites[count]))
		return count;
	count++;
	return count + add_site(elf, finder.vaddr[RLS_MEMORY_DEVICE_FULL], RLS_MEMORY_DEVICE_FULL,
				&sites[count]);
}
