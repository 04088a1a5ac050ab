/* What an NVTX 3 tool and the NVTX code inside an application agree on.
 *
 * NVTX 3 is header-only: every library that uses it carries its own copy of the tables
 * below. On its first NVTX call a copy loads the library named in NVTX_INJECTION64_PATH and
 * calls InitializeInjectionNvtx2 with a function that hands out its tables; the tool stores
 * its own functions in the slots it wants. Slots left alone become no-ops. Layouts and
 * numbers as in NVTX 3.0 to 3.2 (nvtxDetail/nvtxTypes.h, nvToolsExt.h of CUDA 11 to 13).
 */
#ifndef RLS_ANNOTATE_NVTX_WIRE_H
#define RLS_ANNOTATE_NVTX_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

typedef void (*nvtx_function)(void);
typedef const void *(*nvtx_get_export_table)(uint32_t table);

#define NVTX_TABLE_CALLBACKS 1

/* The callbacks table. Slots are pointers to function pointers; slot 0 is unused and may
 * be NULL; size counts the slots. */
struct nvtx_callbacks {
	size_t size;
	int (*get_module)(int module, nvtx_function ***slots, unsigned int *size);
};

enum nvtx_module {
	NVTX_MODULE_CORE = 1,
	NVTX_MODULE_CORE2 = 5, /* the same with domains */
};

enum nvtx_core {
	NVTX_CORE_RANGE_PUSH_EX = 8,
	NVTX_CORE_RANGE_PUSH_A = 9,
	NVTX_CORE_RANGE_PUSH_W = 10,
	NVTX_CORE_RANGE_POP = 11,
};

enum nvtx_core2 {
	NVTX_CORE2_DOMAIN_RANGE_PUSH_EX = 4,
	NVTX_CORE2_DOMAIN_RANGE_POP = 5,
	NVTX_CORE2_DOMAIN_REGISTER_STRING_A = 10,
	NVTX_CORE2_DOMAIN_REGISTER_STRING_W = 11,
	NVTX_CORE2_DOMAIN_CREATE_A = 12,
	NVTX_CORE2_DOMAIN_CREATE_W = 13,
};

enum nvtx_message_type {
	NVTX_MESSAGE_ASCII = 1,
	NVTX_MESSAGE_WIDE = 2,
	NVTX_MESSAGE_REGISTERED = 3, /* what our register-string functions returned */
};

struct nvtx_attributes {
	uint16_t version;
	uint16_t size; /* of the caller's struct, which may be shorter than this one */
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type;
	int32_t reserved;
	uint64_t payload;
	int32_t message_type;
	union {
		const char *ascii;
		const wchar_t *wide;
		const void *registered;
	} message;
};

_Static_assert(offsetof(struct nvtx_attributes, message_type) == 32, "nvtx message type");
_Static_assert(offsetof(struct nvtx_attributes, message) == 40, "nvtx message");
_Static_assert(sizeof(struct nvtx_attributes) == 48, "nvtx attributes");

/* What a push or pop returns when the tool keeps no levels. */
#define NVTX_NO_LEVEL (-2)

#endif
