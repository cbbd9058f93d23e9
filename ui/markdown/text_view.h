#pragma once

#include <QTextBrowser>

namespace headroom::ui {

// Text as tall as its contents, selectable, without scroll bars and without any loading of its own: images and other resources are never
// fetched; a link opens only when it is clicked, and its address is shown in a tooltip.
class TextView : public QTextBrowser {
    Q_OBJECT

public:
    explicit TextView(QWidget* parent = nullptr);

    // The width that the text would take without wrapping, at most `limit`.
    [[nodiscard]] int natural_width(int limit) const;
    // Lays the contents out for the present width and takes their height. Before the first layout has given a width, nothing is done.
    void fit_height();

    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSizeHint() const override { return {32, height_}; }

signals:
    void link_clicked(const QUrl& url);

protected:
    QVariant loadResource(int type, const QUrl& name) override;
    void resizeEvent(QResizeEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    bool event(QEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;

private:
    int height_ = 0;
    bool has_width_ = false;
};

}  // namespace headroom::ui
