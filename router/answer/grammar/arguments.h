// Grammars of a call's arguments, by the schema of its tool.
#pragma once

#include <string>

#include "router/answer/call_form.h"
#include "router/answer/grammar/lark_writer.h"
#include "router/answer/tool_set.h"

namespace penstock::router::answer {

// The arguments as a part of a body, without what stands around them. Forms other than JSON have
// the parameters in the schema's order (required ones first in kPython and kObject). Their texts
// are free, save those of an enum; other values follow the schema. Arguments that the schema does
// not name are allowed only if it names none.
std::string ArgumentsPart(LarkWriter& writer, const CallForm& form, const Tool& tool);

// The same of a tool that is not strict: an object, or arguments of any names and values.
std::string FreeArgumentsPart(LarkWriter& writer, const CallForm& form);

// The schema of a tool's arguments: an object.
std::string SchemaOf(const Tool& tool);

}  // namespace penstock::router::answer
