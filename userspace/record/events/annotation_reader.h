/* Annotations: what the recorder itself reads of a target's annotation library
 * (userspace/annotate/annotate_wire.h), from its memory. The kernel side reads
 * the rest, on the threads themselves. Everything read is the target's and is checked. */
#ifndef RLS_ANNOTATION_READER_H
#define RLS_ANNOTATION_READER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/annotate/annotate_wire.h"
#include "userspace/record/events/translate.h"

/* The descriptor at this address: 0; -EINVAL when it is none of ours; -errno. */
int rls_annotation_reader_descriptor(pid_t pid, uint64_t address,
				     struct rls_annotate_descriptor *out);

/* A name's text, NUL-terminated, cut to RLS_NAME_BYTES - 1: its length, or -errno. */
int rls_annotation_reader_name(pid_t pid, uint64_t address, char out[RLS_NAME_BYTES]);

/* Adds the edges of a thread's record that the kernel side has not seen, up to end_ns. */
int rls_annotation_reader_rest(const struct rls_wire_final *final, uint64_t end_ns,
			       struct rls_translator *translator);

#endif
