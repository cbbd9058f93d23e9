#pragma once

// The filters, by what they work on. filters.cpp knows their names.

#include "core/text/jinja/evaluator.h"

namespace headroom::text::jinja {

#define HR_FILTER(name) [[nodiscard]] Value name(Evaluator& evaluator, const Value& input, Arguments& arguments)

namespace filter {

// Text (filters_text.cpp).
HR_FILTER(capitalize);
HR_FILTER(center);
HR_FILTER(escape);
HR_FILTER(force_escape);
HR_FILTER(format);
HR_FILTER(indent);
HR_FILTER(lower);
HR_FILTER(replace);
HR_FILTER(safe);
HR_FILTER(string);
HR_FILTER(strip_tags);
HR_FILTER(title);
HR_FILTER(tojson);
HR_FILTER(trim);
HR_FILTER(truncate);
HR_FILTER(upper);
HR_FILTER(url_encode);
HR_FILTER(word_count);
HR_FILTER(word_wrap);
HR_FILTER(xml_attributes);

// Numbers and single values (filters_number.cpp).
HR_FILTER(absolute);
HR_FILTER(file_size);
HR_FILTER(fallback);
HR_FILTER(real);
HR_FILTER(integer);
HR_FILTER(length);
HR_FILTER(round);

// Lists and dicts (filters_sequence.cpp).
HR_FILTER(attribute);
HR_FILTER(batch);
HR_FILTER(dict_sort);
HR_FILTER(first);
HR_FILTER(group_by);
HR_FILTER(items);
HR_FILTER(join);
HR_FILTER(last);
HR_FILTER(list);
HR_FILTER(max);
HR_FILTER(min);
HR_FILTER(reverse);
HR_FILTER(slice);
HR_FILTER(sort);
HR_FILTER(sum);
HR_FILTER(unique);

// Those that apply others (filters_select.cpp).
HR_FILTER(map);
HR_FILTER(reject);
HR_FILTER(reject_attribute);
HR_FILTER(select);
HR_FILTER(select_attribute);

}  // namespace filter

#undef HR_FILTER

// A path of attributes as filters take it ("user.name", 0), to be followed from each item.
class AttributePath {
public:
    // Null or None: the item itself.
    AttributePath(Evaluator& evaluator, const Value* path);
    // fallback: in place of what is undefined, where it is not null.
    [[nodiscard]] Value follow(Evaluator& evaluator, const Value& item, const Value* fallback = nullptr) const;

private:
    std::vector<Value> parts_;
};

}  // namespace headroom::text::jinja
