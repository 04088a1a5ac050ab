#include "userspace/python/interpreter.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "userspace/elf/elf.h"
#include "userspace/process/space.h"
#include "userspace/python/python_frames.h"

#define DATA_LIMIT_BYTES (16UL << 20)
/* The layouts of cpython_layout.h. */
#define FIRST_MINOR 8
#define LAST_MINOR 14
#define DEBUG_OFFSETS_COOKIE "xdebugpy"

/* A final version is "3.11.2"; others carry a suffix: "3.13.0rc2+". */
static size_t version_length(const char *text, size_t left)
{
	size_t at = 0;
	int numbers = 0;

	while (at < left && isdigit((unsigned char)text[at])) {
		while (at < left && isdigit((unsigned char)text[at]))
			at++;
		if (++numbers == 3 || at == left || text[at] != '.')
			break;
		at++;
	}
	if (numbers < 3)
		return 0;
	while (at < left && (isalnum((unsigned char)text[at]) || text[at] == '+'))
		at++;
	return at;
}

bool rls_python_version_in(const uint8_t *bytes, size_t length, char *version, size_t size_bytes)
{
	const uint8_t *end = bytes + length;

	for (const uint8_t *at = bytes; (at = memmem(at, end - at, " (", 2)); at += 2) {
		const uint8_t *start = at;
		size_t found;

		/* Back to the start of the string that ends in " (". */
		while (start > bytes && at - start < 24 && start[-1] > ' ' && start[-1] <= '~')
			start--;
		found = version_length((const char *)start, at - start);
		if (!found || start + found != at || found >= size_bytes)
			continue;
		if (start[0] != '2' && start[0] != '3')
			continue;
		memcpy(version, start, found);
		version[found] = '\0';
		return true;
	}
	return false;
}

/* Py_Version (3.11+): 0x030b02f0 is 3.11.2 final. */
static bool version_from_symbol(const struct rls_elf *elf, struct rls_python *python)
{
	static const char levels[16] = {[0xa] = 'a', [0xb] = 'b', [0xc] = 'r'};
	struct rls_elf_symbol symbol;
	const uint8_t *bytes;
	uint32_t hex;
	char level;

	if (rls_elf_find_symbol(elf, "Py_Version", &symbol))
		return false;
	bytes = rls_elf_bytes(elf, symbol.vaddr, sizeof(hex));
	if (!bytes)
		return false;
	memcpy(&hex, bytes, sizeof(hex));
	level = levels[(hex >> 4) & 0xf];
	snprintf(python->version, sizeof(python->version), "%u.%u.%u", hex >> 24,
		 (hex >> 16) & 0xff, (hex >> 8) & 0xff);
	if (level)
		snprintf(python->version + strlen(python->version), 8, "%s%u",
			 level == 'r' ? "rc" : (char[]){level, '\0'}, hex & 0xf);
	return true;
}

/* Before 3.11: Py_GetVersion's buffer in the interpreter's writable data, filled at start. */
static bool version_from_memory(const struct rls_elf *elf, const struct rls_live_space *live,
				struct rls_python *python)
{
	const struct rls_elf_segment *segments;
	size_t count = rls_elf_segments(elf, &segments);

	for (size_t i = 0; i < count; i++) {
		_cleanup_free_ uint8_t *bytes = NULL;
		size_t length = segments[i].memory_bytes;

		if (!segments[i].writable || length > DATA_LIMIT_BYTES)
			continue;
		bytes = malloc(length);
		if (!bytes)
			return false;
		length = live->space.read(&live->space, segments[i].vaddr + python->load_bias,
					  bytes, length);
		if (rls_python_version_in(bytes, length, python->version, sizeof(python->version)))
			return true;
	}
	return false;
}

/* "libpython3.10.so.1.0", "python3.10": better than nothing. */
static bool version_from_path(const char *path, struct rls_python *python)
{
	const char *base = strrchr(path, '/'), *name = strstr(base ? base : path, "python");
	unsigned int major, minor;

	if (!name || sscanf(name, "python%1u.%2u", &major, &minor) != 2)
		return false;
	snprintf(python->version, sizeof(python->version), "%u.%u", major, minor);
	return true;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* An interpreter's library or executable by its name, or the process's own executable: the
 * first file mapped, under whatever name it embeds Python. */
static bool may_be_interpreter(const struct rls_mapping *mapping, const char *executable)
{
	const char *base = base_name(mapping->path);

	return !strncmp(base, "libpython", 9) || !strncmp(base, "python", 6) ||
	       !strcmp(mapping->path, executable);
}

static const char *first_file(const struct rls_mappings *mappings)
{
	for (size_t i = 0; i < mappings->count; i++)
		if (rls_mapping_is_file(&mappings->entries[i]))
			return mappings->entries[i].path;
	return "";
}

static uint64_t runtime_address(const struct rls_elf *elf, const char *symbol_name,
				uint64_t load_bias)
{
	struct rls_elf_symbol symbol;

	if (rls_elf_find_symbol(elf, symbol_name, &symbol))
		return 0;
	return symbol.vaddr + load_bias;
}

/* _Py_DebugOffsets leads _PyRuntime since 3.13: cookie, version, free_threaded. */
static bool is_free_threaded(const struct rls_live_space *live, const struct rls_python *python)
{
	struct {
		char cookie[8];
		uint64_t version, free_threaded;
	} head;

	if (!python->runtime || python->major != 3 || python->minor < 13 ||
	    !rls_space_read(&live->space, python->runtime, &head, sizeof(head)) ||
	    memcmp(head.cookie, DEBUG_OFFSETS_COOKIE, sizeof(head.cookie)))
		return false;
	return head.free_threaded != 0;
}

static bool interpreter_describe(pid_t pid, const struct rls_elf *elf,
				 const struct rls_mapping *mapping, struct rls_python *python)
{
	_cleanup_live_space_ struct rls_live_space live = {.memory = -1};
	uint64_t vaddr;

	if (rls_elf_vaddr_of_offset(elf, mapping->file_offset, &vaddr))
		return false;
	rls_live_space_open(&live, pid);
	python->mapping = mapping;
	python->load_bias = mapping->start - vaddr;
	/* What makes an interpreter: it exports the evaluation loop or what calls it. */
	if (!runtime_address(elf, "_PyEval_EvalFrameDefault", python->load_bias) &&
	    !runtime_address(elf, "PyEval_EvalCode", python->load_bias))
		return false;
	if (!version_from_symbol(elf, python) && !version_from_memory(elf, &live, python) &&
	    !version_from_path(mapping->path, python))
		snprintf(python->version, sizeof(python->version), "3");
	sscanf(python->version, "%u.%u", &python->major, &python->minor);
	python->runtime = runtime_address(elf, "_PyRuntime", python->load_bias);
	python->free_threaded = is_free_threaded(&live, python);
	python->layout_known = !python->free_threaded && python->major == 3 &&
			       python->minor >= FIRST_MINOR && python->minor <= LAST_MINOR;
	python->module_def_type = runtime_address(elf, "PyModuleDef_Type", python->load_bias);
	python->code_type = runtime_address(elf, "PyCode_Type", python->load_bias);
	python->dict_type = runtime_address(elf, "PyDict_Type", python->load_bias);
	return true;
}

static bool try_mapping(pid_t pid, const struct rls_mapping *mapping, struct rls_python *out)
{
	_cleanup_free_ char *path = NULL;
	struct rls_python python = {0};
	struct rls_elf *elf;
	dev_t device;
	ino_t inode;
	bool found;

	if (rls_mapping_locate(pid, mapping, &path, &device, &inode) || rls_elf_open(path, &elf))
		return false;
	found = interpreter_describe(pid, elf, mapping, &python);
	rls_elf_close(elf);
	if (found)
		*out = python;
	return found;
}

/* No real process has more interpreters. */
#define CANDIDATES_MAX 16

/* How many threads run Python in it: none in a library that was merely loaded. */
static size_t count_threads(pid_t pid, const struct rls_python *python)
{
	const struct rls_frame_layout *layout = rls_frame_layout_of(python);

	return layout ? rls_frame_count_threads(pid, python, layout) : 0;
}

/* Of several, the one that is in use; the executable's own is if any is. */
int rls_python_find(pid_t pid, const struct rls_mappings *mappings, struct rls_python *out)
{
	const char *executable = first_file(mappings);
	size_t most = 0, candidates = 0;

	*out = (struct rls_python){0};
	for (size_t i = 0; i < mappings->count && candidates < CANDIDATES_MAX; i++) {
		const struct rls_mapping *mapping = &mappings->entries[i];
		struct rls_python python;
		size_t threads;

		if (!mapping->executable || !rls_mapping_is_file(mapping) ||
		    !may_be_interpreter(mapping, executable) || !try_mapping(pid, mapping, &python))
			continue;
		candidates++;
		threads = count_threads(pid, &python);
		if (candidates == 1 || threads > most) {
			most = threads;
			*out = python;
		}
		if (threads && !strcmp(mapping->path, executable))
			break;
	}
	return 0;
}
