#include "wire_records.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

void send_category(struct rls_translator *translator, uint32_t pid, uint32_t tid, uint64_t time_ns,
		   uint8_t category, struct rls_wire_hit_totals hit_totals)
{
	struct rls_wire_category record = {
		HEADER(struct rls_wire_category, RLS_WIRE_CATEGORY, pid, tid, time_ns),
		.hit_totals = hit_totals,
		.category = category,
	};

	SEND(translator, record);
}

void send_thread(struct rls_translator *translator, uint32_t pid, uint32_t tid, uint64_t time_ns,
		 uint32_t ns_tid, const char *comm)
{
	struct rls_wire_thread record = {
		HEADER(struct rls_wire_thread, RLS_WIRE_THREAD, pid, tid, time_ns),
		.ns_tid = ns_tid,
	};

	memcpy(record.comm, comm, strnlen(comm, sizeof(record.comm))); /* maybe without a NUL */
	SEND(translator, record);
}

void send_fork(struct rls_translator *translator, uint32_t pid, uint32_t tid, uint64_t time_ns,
	       uint32_t child, uint32_t ns_child, uint8_t category)
{
	struct rls_wire_fork record = {
		HEADER(struct rls_wire_fork, RLS_WIRE_FORK, pid, tid, time_ns),
		.child_pid = child,
		.child_ns_pid = ns_child,
		.category = category,
		.comm = "child",
	};

	SEND(translator, record);
}

void send_exec(struct rls_translator *translator, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	struct rls_wire_exec record = {
		HEADER(struct rls_wire_exec, RLS_WIRE_EXEC, pid, tid, time_ns),
		.comm = "program",
	};

	SEND(translator, record);
}

void send_exit(struct rls_translator *translator, uint32_t pid, uint32_t tid, uint64_t time_ns,
	       bool over, bool traced)
{
	struct rls_wire_exit record = {
		HEADER(struct rls_wire_exit, RLS_WIRE_THREAD_EXIT, pid, tid, time_ns),
		.process_over = over,
		.traced = traced,
	};

	SEND(translator, record);
}

void send_name(struct rls_translator *translator, uint32_t pid, uint64_t address, const char *text)
{
	struct rls_wire_name record = {
		HEADER(struct rls_wire_name, RLS_WIRE_NAME, pid, pid, 0),
		.address = address,
		.length = (uint32_t)strlen(text),
	};

	memcpy(record.text, text, strnlen(text, sizeof(record.text)));
	SEND(translator, record);
}

void send_edge_flags(struct rls_translator *translator, uint32_t pid, uint32_t tid,
		     uint64_t time_ns, uint16_t edge, uint16_t depth, uint64_t name, uint8_t flags)
{
	struct rls_wire_edge record = {
		HEADER(struct rls_wire_edge, RLS_WIRE_EDGE, pid, tid, time_ns),
		.name = name,
		.edge = edge,
		.depth = depth,
	};

	record.header.flags = flags;
	SEND(translator, record);
}

void send_edge(struct rls_translator *translator, uint32_t pid, uint32_t tid, uint64_t time_ns,
	       uint16_t edge, uint16_t depth, uint64_t name)
{
	send_edge_flags(translator, pid, tid, time_ns, edge, depth, name, 0);
}

void send_range(struct rls_translator *translator, uint8_t kind, uint32_t pid, uint32_t tid,
		uint64_t time_ns, uint64_t token, const char *text)
{
	struct rls_wire_range record = {
		HEADER(struct rls_wire_range, kind, pid, tid, time_ns),
		.token = token,
		.length = (uint32_t)strlen(text),
	};

	memcpy(record.text, text, strnlen(text, sizeof(record.text)));
	SEND(translator, record);
}

void send_loss(struct rls_translator *translator, uint32_t pid, uint32_t tid, uint64_t since_ns,
	       uint64_t time_ns, uint32_t lost)
{
	struct rls_wire_loss record = {
		HEADER(struct rls_wire_loss, RLS_WIRE_LOSS, pid, tid, time_ns),
		.since_ns = since_ns,
		.lost = lost,
	};

	SEND(translator, record);
}
