/* NVTX push/pop ranges as operations: NVTX_INJECTION64_PATH=/.../librlscope_annotate.so.
 *
 * It is this library and no second one, so that ranges and operations of a thread share a
 * record and nest in each other. Start/end ranges are left alone: they belong to no thread.
 */
#include <stdbool.h>
#include <string.h>

#include "userspace/annotate/names.h"
#include "userspace/annotate/nvtx_wire.h"
#include "userspace/annotate/rlscope_annotate.h"

/* Ranges the thread has open. An unbalanced pop must not end the user's operation. */
static __thread unsigned int depth __attribute__((tls_model("initial-exec")));

/* Domains whose ranges are a library's own and would hide the user's operations. A domain
 * is known by its interned name. */
static const char *const library_domains[] = {"NCCL", "CCCL", "cuBLAS", "cuBLASLt", "cuDNN"};

/* Writes the character's UTF-8 (1 to 4 bytes); anything impossible becomes U+FFFD. */
static size_t encode(uint32_t character, char *out)
{
	if (character > 0x10ffff || (character >= 0xd800 && character < 0xe000))
		character = 0xfffd;
	if (character < 0x80) {
		out[0] = character;
		return 1;
	}
	if (character < 0x800) {
		out[0] = 0xc0 | character >> 6;
		out[1] = 0x80 | (character & 0x3f);
		return 2;
	}
	if (character < 0x10000) {
		out[0] = 0xe0 | character >> 12;
		out[1] = 0x80 | (character >> 6 & 0x3f);
		out[2] = 0x80 | (character & 0x3f);
		return 3;
	}
	out[0] = 0xf0 | character >> 18;
	out[1] = 0x80 | (character >> 12 & 0x3f);
	out[2] = 0x80 | (character >> 6 & 0x3f);
	out[3] = 0x80 | (character & 0x3f);
	return 4;
}

static const struct rls_name *intern_wide(const wchar_t *text)
{
	char bytes[RLS_NAME_BYTES + 4];
	size_t length = 0;

	while (text && *text && length < RLS_NAME_BYTES)
		length += encode(*text++, bytes + length);
	return rls_name_intern(bytes, length);
}

static const struct rls_name *intern_narrow(const char *text)
{
	return rls_name_intern(text ? text : "", text ? strlen(text) : 0);
}

static const struct rls_name *intern_registered(const void *handle)
{
	return rls_name_is_ours(handle) ? handle : rls_name_intern("", 0);
}

static const struct rls_name *name_of(const struct nvtx_attributes *attributes)
{
	if (!attributes || attributes->size < sizeof(*attributes))
		return rls_name_intern("", 0);
	switch (attributes->message_type) {
	case NVTX_MESSAGE_ASCII:
		return intern_narrow(attributes->message.ascii);
	case NVTX_MESSAGE_WIDE:
		return intern_wide(attributes->message.wide);
	case NVTX_MESSAGE_REGISTERED:
		return intern_registered(attributes->message.registered);
	default:
		return rls_name_intern("", 0);
	}
}

static int nvtx_push(const struct rls_name *name)
{
	rlscope_operation_begin_name(name);
	return depth++;
}

static int pop(void)
{
	if (!depth)
		return NVTX_NO_LEVEL;
	rlscope_operation_end();
	return --depth;
}

static int range_push_ex(const struct nvtx_attributes *attributes)
{
	return nvtx_push(name_of(attributes));
}

static int range_push_narrow(const char *text)
{
	return nvtx_push(intern_narrow(text));
}

static int range_push_wide(const wchar_t *text)
{
	return nvtx_push(intern_wide(text));
}

static int range_pop(void)
{
	return pop();
}

static bool is_a_librarys(const void *domain)
{
	if (!domain || !rls_name_is_ours(domain))
		return false;
	for (size_t i = 0; i < sizeof(library_domains) / sizeof(library_domains[0]); i++)
		if (!strcmp(((const struct rls_name *)domain)->text, library_domains[i]))
			return true;
	return false;
}

static int domain_range_push_ex(const void *domain, const struct nvtx_attributes *attributes)
{
	return is_a_librarys(domain) ? NVTX_NO_LEVEL : nvtx_push(name_of(attributes));
}

static int domain_range_pop(const void *domain)
{
	return is_a_librarys(domain) ? NVTX_NO_LEVEL : pop();
}

static const void *domain_register_narrow(const void *domain, const char *text)
{
	return intern_narrow(text);
}

static const void *domain_register_wide(const void *domain, const wchar_t *text)
{
	return intern_wide(text);
}

static const void *domain_create_narrow(const char *name)
{
	return intern_narrow(name);
}

static const void *domain_create_wide(const wchar_t *name)
{
	return intern_wide(name);
}

struct hook {
	unsigned int slot;
	nvtx_function function;
};

static const struct hook core[] = {
	{NVTX_CORE_RANGE_PUSH_EX, (nvtx_function)range_push_ex},
	{NVTX_CORE_RANGE_PUSH_A, (nvtx_function)range_push_narrow},
	{NVTX_CORE_RANGE_PUSH_W, (nvtx_function)range_push_wide},
	{NVTX_CORE_RANGE_POP, (nvtx_function)range_pop},
};

static const struct hook core2[] = {
	{NVTX_CORE2_DOMAIN_RANGE_PUSH_EX, (nvtx_function)domain_range_push_ex},
	{NVTX_CORE2_DOMAIN_RANGE_POP, (nvtx_function)domain_range_pop},
	{NVTX_CORE2_DOMAIN_REGISTER_STRING_A, (nvtx_function)domain_register_narrow},
	{NVTX_CORE2_DOMAIN_REGISTER_STRING_W, (nvtx_function)domain_register_wide},
	{NVTX_CORE2_DOMAIN_CREATE_A, (nvtx_function)domain_create_narrow},
	{NVTX_CORE2_DOMAIN_CREATE_W, (nvtx_function)domain_create_wide},
};

/* All of a module's slots or none: a push without its pop would be worse than neither. */
static bool hook_module(const struct nvtx_callbacks *callbacks, enum nvtx_module module,
			const struct hook *hooks, size_t count)
{
	nvtx_function **slots = NULL;
	unsigned int size = 0;

	if (!callbacks->get_module(module, &slots, &size) || !slots)
		return false;
	for (size_t i = 0; i < count; i++)
		if (hooks[i].slot >= size || !slots[hooks[i].slot])
			return false;
	for (size_t i = 0; i < count; i++)
		*slots[hooks[i].slot] = hooks[i].function;
	return true;
}

/* Called once by every copy of NVTX in the process; 1 when this one was taken. */
RLSCOPE_ANNOTATE_API int InitializeInjectionNvtx2(nvtx_get_export_table get_table);

int InitializeInjectionNvtx2(nvtx_get_export_table get_table)
{
	const struct nvtx_callbacks *callbacks = get_table ? get_table(NVTX_TABLE_CALLBACKS) : NULL;
	bool taken;

	if (!callbacks || callbacks->size < sizeof(*callbacks) || !callbacks->get_module)
		return 0;
	taken = hook_module(callbacks, NVTX_MODULE_CORE, core, sizeof(core) / sizeof(core[0]));
	taken |= hook_module(callbacks, NVTX_MODULE_CORE2, core2, sizeof(core2) / sizeof(core2[0]));
	return taken;
}
