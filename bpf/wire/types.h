/* Fixed-width types of the wire headers, which clang -target bpf and gcc compile alike. */
#ifndef RLS_WIRE_TYPES_H
#define RLS_WIRE_TYPES_H

#ifdef __VMLINUX_H__
#define RLS_U8 __u8
#define RLS_U16 __u16
#define RLS_U32 __u32
#define RLS_U64 __u64
#define RLS_S64 __s64
#else
#include <stddef.h>
#include <stdint.h>
#define RLS_U8 uint8_t
#define RLS_U16 uint16_t
#define RLS_U32 uint32_t
#define RLS_U64 uint64_t
#define RLS_S64 int64_t
#endif

#endif
