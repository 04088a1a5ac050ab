/* Tensors: how many bytes a c10::TensorImpl holds, and where.
 *
 * Its fields, in this order, lie at a place that depends on PyTorch's version:
 *
 *     size_t dimensions │ 10 words: sizes and strides of up to 5, or where they are │ storage offset │
 *     number of elements │ type (16 bits) │ optional device
 *
 * A place is taken for right if the number of elements is the product of the sizes, and type and device are some. No
 * object has passed at the place of another version that was tried: there, what would be the number contains flags.
 */
#ifndef RLS_TENSOR_BPF_H
#define RLS_TENSOR_BPF_H

#include "bpf/state.bpf.h"

/* Offsets of the number of elements in PyTorch 2.15, between, and in 1.13. */
#define TENSOR_PLACE_FIRST 152
#define TENSOR_PLACE_LAST 168
#define TENSOR_INLINE 5
#define TENSOR_DIMENSIONS_MAX 16

struct tensor_fields {
	__u64 dimensions;
	__u64 sizes[2 * TENSOR_INLINE];
	__u64 storage_offset;
	__u64 elements;
	__u16 type;
	__u8 device[6];
};

struct tensor {
	__u64 bytes;
	__u64 address; /* of the first one; 0: not known */
};

/* Of the scalar types by number (c10/core/ScalarType.h, which is appended to only). */
static const __u8 item_bytes[64] = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4, 2,
				    1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1,  2, 4, 8, 1, 1,
				    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1, 1, 1};

/* start: where the fields lie. The sizes are read from there, as an index may not be variable on the stack. */
static __always_inline __u64 number_of_elements(const struct tensor_fields *fields, __u64 start)
{
	__u64 sizes = fields->dimensions <= TENSOR_INLINE
			      ? start + offsetof(struct tensor_fields, sizes)
			      : fields->sizes[0];
	__u64 product = 1;

	for (__u32 i = 0; i < TENSOR_DIMENSIONS_MAX; i++) {
		if (i >= fields->dimensions)
			break;
		product *= word_at(sizes + i * sizeof(__u64));
	}
	return product;
}

/* c10::optional had its flag before its value, std::optional has it behind. Of the CPU there is one, without a number.
 * 1: the CPU; 0: another; -1: no device. */
static __always_inline int is_cpu(const __u8 device[3])
{
	if (device[0] == 0 && (device[1] == 0xff || device[1] == 0) && device[2] == 1)
		return 1;
	if (device[0] == 1 && device[1] == 0 && (device[2] == 0xff || device[2] == 0))
		return 1;
	return (device[2] == 1 && device[0] < 32) || (device[0] == 1 && device[1] < 32) ? 0 : -1;
}

static __always_inline bool is_tensor(const struct tensor_fields *fields, __u64 start)
{
	return fields->dimensions <= TENSOR_DIMENSIONS_MAX && fields->type < sizeof(item_bytes) &&
	       item_bytes[fields->type & 63] && is_cpu(fields->device) >= 0 &&
	       fields->elements >> 48 == 0 && number_of_elements(fields, start) == fields->elements;
}

enum { TENSOR_UNKNOWN, TENSOR_ELSEWHERE, TENSOR_HERE };

SUBPROGRAM int read_tensor(__u64 impl, struct tensor *out)
{
	struct tensor_fields fields;
	__u64 item, storage;

	for (__u32 place = TENSOR_PLACE_FIRST; place <= TENSOR_PLACE_LAST; place += 8) {
		__u64 start = impl + place - offsetof(struct tensor_fields, elements);

		if (bpf_probe_read_user(&fields, sizeof(fields), (void *)start))
			return TENSOR_UNKNOWN;
		if (!is_tensor(&fields, start))
			continue;
		if (!is_cpu(fields.device))
			return TENSOR_ELSEWHERE;
		item = item_bytes[fields.type & 63];
		out->bytes = fields.elements * item;
		/* The storage comes first in the object, and the data first in the storage. */
		storage = place == TENSOR_PLACE_FIRST ? 16 : 24;
		out->address = word_at(word_at(impl + storage) + storage);
		if (out->address)
			out->address += fields.storage_offset * item;
		return TENSOR_HERE;
	}
	return TENSOR_UNKNOWN;
}

#endif
