#pragma once

#include <QStringView>

namespace headroom::ui {

// An answer's text taken apart: models that think first write it between <think> and </think> at the beginning.
struct AnswerParts {
    QStringView reasoning;      // without the tags, trimmed; empty: none
    QStringView answer;         // what follows, without leading blank lines
    bool thinking = false;      // the reasoning has not ended yet
};

// The views point into `text`. A </think> without an opening tag ends reasoning too: some templates write the opening one into the prompt.
[[nodiscard]] AnswerParts split_reasoning(QStringView text);

}  // namespace headroom::ui
