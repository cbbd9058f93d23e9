#pragma once

#include <QGridLayout>
#include <QWidget>

#include <vector>

#include "core/server/request_log.h"
#include "ui/theme/theme.h"

namespace headroom::ui {

// Requests below each other: what was asked, how it stands, how fast it goes; those in progress with a button that ends them.
class RequestList : public QWidget {
    Q_OBJECT

public:
    // name: of the rows' widgets. empty: what is said where there are none.
    RequestList(const Theme& theme, const QString& name, const QString& empty, QWidget* parent = nullptr);

    void set_requests(const std::vector<server::RequestRecord>& requests);

signals:
    void cancelled(quint64 number);

private:
    struct Row {
        QLabel* what;
        QLabel* state;
        QLabel* speed;
        QWidget* cancel;
        quint64 number = 0;
    };
    Row& row(std::size_t i);

    const Theme& theme_;
    QString name_;
    QGridLayout* grid_;
    QLabel* empty_;
    std::vector<Row> rows_;  // more than are shown, maybe
};

}  // namespace headroom::ui
