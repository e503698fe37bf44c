//! The options themselves, a function for each kind of picture.

use serde_json::{Value, json};

use super::{Chart, POINTS_MAX, Quantity};
use crate::axis::{Axis, Ruler, Scale, short};
use crate::palette::{self, Marker, hex};
use crate::picture::{Bars, Direction, Heat, Lines, Point, Radar, Series, Style};
use crate::svg;
use crate::thin::thin;

/// Points up to which each has its marker.
const MARKED_POINTS_MAX: usize = 40;
/// Markers on a longer line.
const MARKERS_ON_LINE: usize = 6;
/// Points above which a dashed line would only be noise.
const DASHED_POINTS_MAX: usize = 400;
/// Points above which the axis below can be zoomed.
const UNZOOMED_POINTS_MAX: usize = 120;

/// Lines over an axis.
pub fn lines(lines: &Lines) -> Chart {
    let (x, y) = svg::lines::rulers(lines);
    let several = lines.series.len() > 1;
    let mut series: Vec<Value> = Vec::new();
    for (index, line) in lines.series.iter().enumerate() {
        series.push(one_line(lines, line, index, several));
    }
    for (index, line) in lines.series.iter().enumerate() {
        series.extend(spread(lines, line, index));
    }
    series.push(marks(lines));
    let banded = lines.bands.iter().any(|b| b.on == Direction::X);
    let long = lines.series.iter().any(|s| s.points.len() > UNZOOMED_POINTS_MAX);
    let mut option = json!({
        "animation": false,
        "grid": {
            "left": 12, "right": 18, "top": if banded { 60 } else { 44 }, "bottom": if long { 68 } else { 26 },
            "outerBoundsMode": "same", "outerBoundsContain": "axisLabel",
        },
        "legend": legend(lines.series.len()),
        "tooltip": tooltip("axis", "@lines"),
        "xAxis": below(&lines.x, &x),
        "yAxis": at_left(&lines.y, &y),
        "series": series,
    });
    if banded {
        // Names of bands stand between the plot and its heading.
        option["yAxis"]["nameGap"] = json!(30);
    }
    if long {
        option["toolbox"] = json!({
            "right": 6, "top": 2, "itemSize": 13, "showTitle": false,
            "iconStyle": { "borderColor": "@quiet" },
            "feature": { "dataZoom": { "yAxisIndex": "none" }, "restore": {} },
        });
        option["dataZoom"] = json!([{
            "type": "slider", "height": 22, "bottom": 8, "left": 54, "right": 54,
            "filterMode": "none", "showDetail": false, "brushSelect": false,
            "borderColor": "@grid", "backgroundColor": "@paper", "fillerColor": "@veil",
            "handleStyle": { "color": "@paper", "borderColor": "@quiet" },
            "moveHandleStyle": { "color": "@grid" },
            "dataBackground": {
                "lineStyle": { "color": "@quiet" }, "areaStyle": { "color": "@grid" },
            },
            "selectedDataBackground": {
                "lineStyle": { "color": "@c0" }, "areaStyle": { "color": "@grid" },
            },
        }]);
    }
    Chart {
        names: lines.series.iter().map(|s| s.name.clone()).collect(),
        x: Quantity::from(&lines.x),
        y: Quantity::from(&lines.y),
        height: if long { 410 } else { 370 },
        option,
    }
}

fn one_line(lines: &Lines, line: &Series, index: usize, several: bool) -> Value {
    let points: Vec<Point> =
        thin(&line.points, POINTS_MAX).into_iter().filter(|p| p.x.is_finite()).collect();
    let all_marked = line.style == Style::Dots || (several && points.len() <= MARKED_POINTS_MAX);
    let every = (points.len() / MARKERS_ON_LINE).max(1);
    let first = every * (index % 4 + 1) / 5;
    let values: Vec<(Option<f64>, Option<f64>)> = points
        .iter()
        .map(|p| (value_of(&lines.x, p.x), p.y.and_then(|y| value_of(&lines.y, y))))
        .collect();
    let drawn = |n: Option<usize>| {
        n.and_then(|n| values.get(n)).is_some_and(|(x, y)| x.is_some() && y.is_some())
    };
    let data: Vec<Value> = values
        .iter()
        .enumerate()
        .map(|(n, value)| {
            let stands_out = several && n % every == first % every;
            // A point between two gaps has no line to be seen by.
            let alone = drawn(Some(n)) && !drawn(n.checked_sub(1)) && !drawn(Some(n + 1));
            if !all_marked && (stands_out || alone) {
                json!({ "value": value, "symbol": symbol(index), "symbolSize": 7 })
            } else {
                json!(value)
            }
        })
        .collect();
    let dashed = several && points.len() <= DASHED_POINTS_MAX;
    let colour = format!("@c{}", index % palette::SERIES.len());
    let mut series = json!({
        "type": "line",
        "name": format!("s{index}"),
        "data": data,
        "symbol": if all_marked { symbol(index) } else { "none" },
        "symbolSize": 7,
        "showSymbol": true,
        "showAllSymbol": true,
        "connectNulls": false,
        "lineStyle": {
            "width": if line.style == Style::Dots { 0 } else { 2 },
            "color": colour,
            "type": if dashed { dash(index) } else { json!("solid") },
        },
        "itemStyle": { "color": colour },
        "emphasis": { "disabled": true },
    });
    match line.style {
        Style::Step => series["step"] = json!("end"),
        Style::Smooth => {
            series["smooth"] = json!(0.3);
            series["smoothMonotone"] = json!("x");
        }
        Style::Straight | Style::Dots => {}
    }
    series
}

/// The range around a line: a shape for each step along it, which the page draws.
fn spread(lines: &Lines, line: &Series, index: usize) -> Option<Value> {
    let every = line.spread.len().div_ceil(POINTS_MAX / 4).max(1);
    let corners: Vec<[f64; 3]> = line
        .spread
        .chunks(every)
        .filter_map(|group| {
            let of = |value| value_of(&lines.y, value);
            let low = group.iter().filter_map(|s| of(s.low)).fold(f64::NAN, f64::min);
            let high = group.iter().filter_map(|s| of(s.high)).fold(f64::NAN, f64::max);
            let x = value_of(&lines.x, group[0].x)?;
            (low.is_finite() && high.is_finite()).then_some([x, low, high])
        })
        .collect();
    let data: Vec<Vec<f64>> = corners.windows(2).map(|p| [p[0], p[1]].concat()).collect();
    (!data.is_empty()).then(|| {
        json!({
            "type": "custom",
            "name": format!("s{index}"),
            "renderItem": "@spread",
            "data": data,
            "dimensions": ["x", "low", "high", "x2", "low2", "high2"],
            "encode": { "x": ["x", "x2"], "y": ["low", "high", "low2", "high2"] },
            "itemStyle": { "color": format!("@c{}", index % palette::SERIES.len()) },
            "clip": true, "silent": true, "z": 1, "tooltip": { "show": false },
        })
    })
}

/// Marks and bands, on a series of their own so that none of the lines takes them away with it.
fn marks(lines: &Lines) -> Value {
    let key = |on| if on == Direction::X { "xAxis" } else { "yAxis" };
    let axis = |on| if on == Direction::X { &lines.x } else { &lines.y };
    let marks: Vec<Value> = lines
        .marks
        .iter()
        .filter_map(|mark| {
            let at = value_of(axis(mark.on), mark.at)?;
            let position = if mark.on == Direction::X && !svg::lines::label_is_before(lines, mark) {
                "insideEndBottom"
            } else {
                "insideEndTop"
            };
            let label = json!({ "position": position });
            Some(json!({ key(mark.on): at, "name": mark.label, "label": label }))
        })
        .collect();
    let bands: Vec<Value> = lines
        .bands
        .iter()
        .enumerate()
        .filter_map(|(n, band)| {
            let from = value_of(axis(band.on), band.from)?;
            let to = value_of(axis(band.on), band.to)?;
            // Above it, clear of the lines inside.
            let position = if band.on == Direction::X { json!("top") } else { json!([4, -15]) };
            Some(json!([
                {
                    key(band.on): from, "name": band.label,
                    "label": { "position": position },
                    "itemStyle": { "color": if n % 2 == 0 { "@veil" } else { "@veil2" } },
                },
                { key(band.on): to },
            ]))
        })
        .collect();
    json!({
        "type": "line", "name": "marks", "data": [], "silent": true,
        "markLine": {
            "symbol": "none", "silent": true, "data": marks,
            "lineStyle": { "color": "@mark", "type": [4, 3], "width": 1.25 },
            "label": {
                "color": "@mark", "position": "insideEndTop", "formatter": "{b}", "fontSize": 11,
                "textBorderColor": "@paper", "textBorderWidth": 3,
            },
        },
        "markArea": {
            "silent": true, "data": bands,
            "label": { "color": "@quiet", "formatter": "{b}", "fontSize": 11, "distance": 4 },
        },
    })
}

/// A heat map.
pub fn heat(heat: &Heat) -> Chart {
    let scale = heat.value.scale;
    let (low, high) = svg::heat::extent(heat);
    let category = |labels: &[String]| {
        json!({
            "type": "category", "data": labels,
            "axisLine": { "show": false }, "axisTick": { "show": false },
            "axisLabel": { "color": "@quiet", "fontSize": 11.5 },
            "nameTextStyle": { "color": "@quiet", "fontSize": 12 },
        })
    };
    let mut x = category(&heat.x);
    x["name"] = json!(heat.x_title);
    x["nameLocation"] = json!("middle");
    x["nameGap"] = json!(28);
    let mut y = category(&heat.y);
    y["name"] = json!(heat.y_title);
    y["nameTextStyle"]["align"] = json!("right");
    let option = json!({
        "animation": false,
        "grid": {
            "left": 12, "right": 12, "top": 34, "bottom": 76, "show": true,
            "backgroundColor": "@veil", "borderWidth": 0,
            "outerBoundsMode": "same", "outerBoundsContain": "axisLabel",
        },
        "tooltip": tooltip("item", "@heat"),
        "xAxis": x,
        "yAxis": y,
        "visualMap": {
            "type": "continuous", "dimension": 3, "min": low, "max": high,
            "orient": "horizontal", "left": "center", "bottom": 8, "calculable": false,
            "itemWidth": 9, "itemHeight": 220,
            "inRange": { "color": palette::HEAT.map(hex) },
            "text": [
                format!("{} {}", heat.number(unplaced(scale, high)), heat.value.unit),
                heat.number(unplaced(scale, low)),
            ],
            "textStyle": { "color": "@quiet", "fontSize": 11.5 },
        },
        "series": [{
            "type": "heatmap", "name": "s0", "data": cells(heat, low),
            "label": { "show": true, "fontSize": 11.5 },
            "itemStyle": { "borderColor": "@paper", "borderWidth": 1 },
            "emphasis": { "itemStyle": { "borderColor": "@ink", "borderWidth": 1.5 } },
        }],
    });
    Chart {
        names: vec![heat.value.heading()],
        x: Quantity { label: heat.x_title.clone(), ..Quantity::default() },
        y: Quantity::from(&heat.value),
        height: (heat.y.len() as u32 * 36).clamp(108, 560) + 128,
        option,
    }
}

/// The cells of a heat map whose colours begin at `low`; those without a value are left out.
fn cells(heat: &Heat, low: f64) -> Vec<Value> {
    let mut cells = Vec::new();
    for row in 0..heat.y.len() {
        for column in 0..heat.x.len() {
            let Some(value) = heat.at(row, column) else { continue };
            let text_colour = palette::text_on(palette::heat(svg::heat::share(heat, value)));
            cells.push(json!({
                // The colour goes by the last: the place on the value's own scale.
                "value": [column, row, value, heat.value.scale.place(value).unwrap_or(low)],
                "label": { "color": hex(text_colour), "formatter": heat.number(value) },
            }));
        }
    }
    cells
}

/// A radar. ECharts draws a value that isn't known in the middle, as if it were zero; rings that have
/// one are therefore drawn by the page, from their shares.
pub fn radar(radar: &Radar) -> Chart {
    let mut series: Vec<Value> = Vec::new();
    for (index, ring) in radar.rings.iter().enumerate() {
        let colour = format!("@c{}", index % palette::SERIES.len());
        let shares: Vec<Option<f64>> =
            (0..radar.spokes.len()).map(|spoke| radar.share(index, spoke)).collect();
        if shares.iter().all(Option::is_some) {
            series.push(json!({
                "type": "radar", "name": format!("s{index}"),
                "data": [{ "value": ring.values, "name": format!("s{index}") }],
                "symbol": symbol(index), "symbolSize": 7,
                "lineStyle": { "color": colour, "width": 2, "type": dash(index) },
                "itemStyle": { "color": colour },
                "areaStyle": { "color": colour, "opacity": 0.10 },
            }));
        } else {
            let value: Vec<Value> = shares
                .into_iter()
                .map(|share| share.map_or(Value::Null, |share| json!(share)))
                .collect();
            series.push(json!({
                "type": "custom", "name": format!("s{index}"), "coordinateSystem": "none",
                "renderItem": "@ring", "data": [value], "z": 3,
                "lineStyle": { "type": dash(index) }, "symbol": symbol(index),
                "itemStyle": { "color": colour },
            }));
        }
    }
    let spokes: Vec<Value> = radar
        .spokes
        .iter()
        .map(|spoke| {
            let rim = format!("{} {}", short(spoke.maximum), spoke.unit);
            json!({ "name": format!("{}\n{}", spoke.name, rim.trim_end()), "min": 0,
                    "max": if spoke.maximum > 0.0 { spoke.maximum } else { 1.0 } })
        })
        .collect();
    let option = json!({
        "animation": false,
        "legend": legend(radar.rings.len()),
        "tooltip": tooltip("item", "@radar"),
        "radar": {
            "indicator": spokes, "shape": "polygon", "splitNumber": 4,
            "center": ["50%", "50%"], "radius": "70%", "clockwise": true,
            "axisName": { "color": "@quiet", "fontSize": 11.5, "lineHeight": 15 },
            "axisLine": { "lineStyle": { "color": "@grid" } },
            "splitLine": { "lineStyle": { "color": "@grid" } },
            "splitArea": { "show": false },
        },
        "series": series,
    });
    Chart {
        names: radar.rings.iter().map(|r| r.name.clone()).collect(),
        x: Quantity::default(),
        y: Quantity::default(),
        height: 410,
        option,
    }
}

/// Bars in groups.
pub fn bars(bars: &Bars) -> Chart {
    let ruler = svg::bars::ruler(bars);
    let mut series: Vec<Value> = Vec::new();
    for (index, one) in bars.series.iter().enumerate() {
        let data: Vec<Value> = (0..bars.groups.len())
            .map(|n| {
                let bar = one.values.get(n).copied().flatten();
                json!(bar.and_then(|bar| value_of(&bars.y, bar.value)))
            })
            .collect();
        series.push(json!({
            "type": "bar", "name": format!("s{index}"), "data": data,
            "barGap": "0%", "barCategoryGap": "28%", "barMaxWidth": 64,
            "itemStyle": {
                "color": format!("@c{}", index % palette::SERIES.len()), "opacity": 0.88,
                "borderColor": "@paper", "borderWidth": 1,
            },
        }));
    }
    series.extend((0..bars.series.len()).filter_map(|index| error_bars(bars, index)));
    let option = json!({
        "animation": false,
        "grid": {
            "left": 12, "right": 18, "top": 44, "bottom": 26,
            "outerBoundsMode": "same", "outerBoundsContain": "axisLabel",
        },
        "legend": legend(bars.series.len()),
        "tooltip": tooltip("axis", "@bars"),
        "xAxis": {
            "type": "category", "data": bars.groups, "name": bars.x_title,
            "nameLocation": "middle", "nameGap": 28,
            "axisLine": { "lineStyle": { "color": "@ink" } }, "axisTick": { "show": false },
            "axisLabel": { "color": "@quiet", "fontSize": 11.5 },
            "nameTextStyle": { "color": "@quiet", "fontSize": 12 },
        },
        "yAxis": at_left(&bars.y, &ruler),
        "series": series,
    });
    Chart {
        names: bars.series.iter().map(|s| s.name.clone()).collect(),
        x: Quantity { label: bars.x_title.clone(), ..Quantity::default() },
        y: Quantity::from(&bars.y),
        height: 370,
        option,
    }
}

/// The error bars of a series of bars, which the page draws; None if no bar of it has a range.
fn error_bars(bars: &Bars, index: usize) -> Option<Value> {
    let data: Vec<Value> = bars.series[index]
        .values
        .iter()
        .enumerate()
        .filter_map(|(n, bar)| {
            let bar = (*bar)?;
            let low = value_of(&bars.y, bar.low?)?;
            let high = value_of(&bars.y, bar.high?)?;
            Some(json!([n, low, high, index, bars.series.len()]))
        })
        .collect();
    (!data.is_empty()).then(|| {
        json!({
            "type": "custom", "name": format!("s{index}"), "renderItem": "@error", "data": data,
            "dimensions": ["group", "low", "high", "index", "count"],
            "encode": { "x": "group", "y": ["low", "high"] },
            "itemStyle": { "color": "@ink" },
            "silent": true, "z": 5, "tooltip": { "show": false },
        })
    })
}

/// What stands in the options for a value: the number of nines on an axis of nines, the value itself
/// elsewhere; None if the axis has no place for it.
fn value_of(axis: &Axis, value: f64) -> Option<f64> {
    let place = axis.scale.place(value)?;
    Some(if axis.scale == Scale::Nines { place } else { value })
}

/// The value at a place of a scale.
fn unplaced(scale: Scale, place: f64) -> f64 {
    match scale {
        Scale::Linear => place,
        Scale::Log => 10f64.powf(place),
        Scale::Nines => 100.0 * (1.0 - 10f64.powf(-place)),
    }
}

fn axis(axis: &Axis, ruler: &Ruler) -> Value {
    let mut option = json!({
        "type": if axis.scale == Scale::Log { "log" } else { "value" },
        "name": axis.heading(),
        "axisLabel": {
            "color": "@quiet", "fontSize": 11.5, "hideOverlap": true,
            "formatter": if axis.scale == Scale::Nines { "@nines" } else { "@number" },
        },
        "nameTextStyle": { "color": "@quiet", "fontSize": 12 },
    });
    let ends = match axis.scale {
        Scale::Log => (unplaced(Scale::Log, ruler.low), unplaced(Scale::Log, ruler.high)),
        Scale::Linear | Scale::Nines => (ruler.low, ruler.high),
    };
    option["min"] = json!(ends.0);
    option["max"] = json!(ends.1);
    option
}

fn below(data: &Axis, ruler: &Ruler) -> Value {
    let mut option = axis(data, ruler);
    option["nameLocation"] = json!("middle");
    option["nameGap"] = json!(28);
    option["splitLine"] = json!({ "show": false });
    option["axisLine"] = json!({ "show": true, "onZero": false, "lineStyle": { "color": "@ink" } });
    option["axisTick"] = json!({ "show": true, "lineStyle": { "color": "@quiet" } });
    if data.scale == Scale::Nines {
        option["interval"] = json!(1);
    }
    if !data.ticks.is_empty() {
        option["axisTick"]["customValues"] = json!(data.ticks);
        option["axisLabel"]["customValues"] = json!(data.ticks);
        // A tick at an end isn't drawn if rounding puts it outside.
        let ends = data.ticks.iter().fold(
            (unplaced(data.scale, ruler.low), unplaced(data.scale, ruler.high)),
            |(low, high), &tick| (low.min(tick), high.max(tick)),
        );
        option["min"] = json!(ends.0);
        option["max"] = json!(ends.1);
    }
    // An end that isn't round has no label: it would stand on the one beside it.
    let at_tick = |end: f64| ruler.ticks.iter().any(|t| (t.place - end).abs() < 1e-9);
    option["axisLabel"]["showMinLabel"] = json!(at_tick(ruler.low));
    option["axisLabel"]["showMaxLabel"] = json!(at_tick(ruler.high));
    option
}

fn at_left(data: &Axis, ruler: &Ruler) -> Value {
    let mut option = axis(data, ruler);
    option["nameTextStyle"]["align"] = json!("left");
    option["nameGap"] = json!(14);
    option["splitLine"] = json!({ "lineStyle": { "color": "@grid" } });
    option["axisLine"] = json!({ "show": false });
    option["axisTick"] = json!({ "show": false });
    if let Some(step) = ruler.step {
        option["interval"] = json!(step);
    }
    option
}

/// Not shown: the page has one that wraps. It keeps which series are.
fn legend(count: usize) -> Value {
    let names: Vec<String> = (0..count).map(|n| format!("s{n}")).collect();
    json!({ "show": false, "data": names })
}

fn tooltip(trigger: &str, formatter: &str) -> Value {
    json!({
        "trigger": trigger, "formatter": formatter, "confine": true,
        "backgroundColor": "@paper", "borderColor": "@grid", "padding": [6, 10],
        "textStyle": { "color": "@ink", "fontSize": 12.5 },
        "axisPointer": {
            "type": "line", "lineStyle": { "color": "@quiet" }, "label": { "show": false },
        },
    })
}

fn symbol(index: usize) -> &'static str {
    match palette::marker(index) {
        Marker::Circle => "circle",
        Marker::Square => "rect",
        Marker::Triangle => "triangle",
        Marker::Diamond => "diamond",
    }
}

fn dash(index: usize) -> Value {
    match palette::dashes(index) {
        [] => json!("solid"),
        lengths => json!(lengths),
    }
}
