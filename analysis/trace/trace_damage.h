/* Trace damage: what the readers of both forms say of a trace without an end mark. The sentence is
 * the same in both, so a dump of such a trace reports what the trace itself does.
 */
#ifndef RLS_TRACE_DAMAGE_H
#define RLS_TRACE_DAMAGE_H

#define RLS_DAMAGE_NO_END                                                                          \
	"the trace has no end mark: its recording was cut short, and its last moments may be "     \
	"missing"
#define RLS_DAMAGE_INCOMPLETE                                                                      \
	"the recording ended before it was complete: some of what happened is not in the trace"

#endif
