/* Wire records by hand, as the kernel side sends them. Each is translated at once. */
#ifndef RLS_TEST_WIRE_RECORDS_H
#define RLS_TEST_WIRE_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire/record.h"
#include "userspace/record/events/translate.h"

#define HEADER(type, kind_, pid_, tid_, time_)                                                     \
	.header = {.size = sizeof(type),                                                           \
		   .kind = (kind_),                                                                \
		   .pid = (pid_),                                                                  \
		   .tid = (tid_),                                                                  \
		   .time_ns = (time_)}

#define SEND(translator, record)                                                                   \
	assert_int_equal(rls_translate((translator), &(record).header, sizeof(record)), 0)

void send_category(struct rls_translator *translator, uint32_t pid, uint32_t tid, uint64_t time_ns,
		   uint8_t category, struct rls_wire_hit_totals hit_totals);
void send_thread(struct rls_translator *translator, uint32_t pid, uint32_t tid, uint64_t time_ns,
		 uint32_t ns_tid, const char *comm);
void send_fork(struct rls_translator *translator, uint32_t pid, uint32_t tid, uint64_t time_ns,
	       uint32_t child, uint32_t ns_child, uint8_t category);
void send_exec(struct rls_translator *translator, uint32_t pid, uint32_t tid, uint64_t time_ns);
void send_exit(struct rls_translator *translator, uint32_t pid, uint32_t tid, uint64_t time_ns,
	       bool over, bool traced);
void send_name(struct rls_translator *translator, uint32_t pid, uint64_t address, const char *text);
void send_edge_flags(struct rls_translator *translator, uint32_t pid, uint32_t tid,
		     uint64_t time_ns, uint16_t edge, uint16_t depth, uint64_t name, uint8_t flags);
void send_edge(struct rls_translator *translator, uint32_t pid, uint32_t tid, uint64_t time_ns,
	       uint16_t edge, uint16_t depth, uint64_t name);
void send_range(struct rls_translator *translator, uint8_t kind, uint32_t pid, uint32_t tid,
		uint64_t time_ns, uint64_t token, const char *text);
void send_loss(struct rls_translator *translator, uint32_t pid, uint32_t tid, uint64_t since_ns,
	       uint64_t time_ns, uint32_t lost);

#endif
