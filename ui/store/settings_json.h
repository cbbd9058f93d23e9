#pragma once

#include <QByteArray>

#include "ui/store/records.h"

namespace headroom::ui {

// Sampling options and the limit of tokens as JSON, for the database. Reading takes defaults for what is missing or out of range.
QByteArray sampling_to_json(const ConversationSettings& settings);
void sampling_from_json(const QByteArray& json, ConversationSettings& settings);

}  // namespace headroom::ui
