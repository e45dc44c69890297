import { beforeEach, describe, expect, test } from "vitest";

import { Reading } from "../src/reading/reading";

let reading: Reading;
let box: { scrollTop: number; scrollHeight: number; clientHeight: number };

beforeEach(() => {
  reading = new Reading();
  box = { scrollTop: 500, scrollHeight: 1000, clientHeight: 500 };
  reading.onResize(box);
});

function scrollTo(top: number): void {
  box.scrollTop = top;
  reading.onScroll(box);
}

function grow(height: number): void {
  box.scrollHeight = height;
  reading.onResize(box);
}

test("text that grows is followed", () => {
  grow(1200);

  expect(box.scrollTop).toBe(1200);
});

test("a wheel upwards ends following, whatever grows afterwards", () => {
  reading.onWheel(-10, box);
  scrollTo(480);
  grow(1200);

  expect(reading.isFollowing.value).toBe(false);
  expect(box.scrollTop).toBe(480);
});

test("the first pixels of a smooth scroll upwards are not taken for an arrival", () => {
  reading.onWheel(-10, box);
  scrollTo(498);

  expect(reading.isFollowing.value).toBe(false);
});

test("a wheel upwards in a text that fits changes nothing", () => {
  box = { scrollTop: 0, scrollHeight: 300, clientHeight: 500 };
  reading.onWheel(-10, box);

  expect(reading.isFollowing.value).toBe(true);
});

test("the scrollbar dragged upwards ends following", () => {
  scrollTo(300);

  expect(reading.isFollowing.value).toBe(false);
});

test("a key upwards ends following and another key does not", () => {
  reading.onKey("Tab", box);
  const afterTab = reading.isFollowing.value;
  reading.onKey("PageUp", box);

  expect(afterTab).toBe(true);
  expect(reading.isFollowing.value).toBe(false);
});

test("a finger that pulls the text down ends following", () => {
  reading.onTouchStart(100);
  reading.onTouchMove(130, box);

  expect(reading.isFollowing.value).toBe(false);
});

test("reaching the bottom follows again", () => {
  reading.onWheel(-10, box);
  scrollTo(300);
  scrollTo(499);

  expect(reading.isFollowing.value).toBe(true);
});

test("a layout that shrinks does not end following", () => {
  box.scrollHeight = 900;
  scrollTo(400);

  expect(reading.isFollowing.value).toBe(true);
});

test("an answer's end does not move a reader who rests", () => {
  reading.onWheel(-10, box);
  scrollTo(200);
  grow(1030);
  grow(1010);

  expect(box.scrollTop).toBe(200);
});

test("opening a detail keeps it in view while the text grows", () => {
  scrollTo(500);
  reading.rest();
  grow(1200);

  expect(box.scrollTop).toBe(500);
});

test("a text that has become short enough to fit is followed", () => {
  reading.rest();
  grow(400);

  expect(reading.isFollowing.value).toBe(true);
});

test("asking for the latest goes there and follows", () => {
  reading.onWheel(-10, box);
  scrollTo(200);
  reading.followNow(box);

  expect(box.scrollTop).toBe(1000);
  expect(reading.isFollowing.value).toBe(true);
});

describe("on the way to an end that moves away", () => {
  beforeEach(() => {
    reading.onWheel(-10, box);
    scrollTo(200);
  });

  test.each([
    ["End", () => reading.onKey("End", box)],
    ["a wheel", () => reading.onWheel(3_000, box)],
    [
      "a finger",
      () => {
        reading.onTouchStart(400);
        reading.onTouchMove(100, box);
      },
    ],
  ])("%s that comes to where the end was follows", (_, setOut) => {
    setOut();
    scrollTo(350);
    grow(1100);
    scrollTo(498);
    grow(1200);

    expect(box.scrollTop).toBe(1200);
  });

  test("a reader who stops before it rests", () => {
    reading.onKey("PageDown", box);
    scrollTo(450);
    reading.onScrollEnd();
    grow(1200);

    expect(box.scrollTop).toBe(450);
  });

  test("where the end was once says nothing to the next step down", () => {
    reading.onKey("ArrowDown", box);
    scrollTo(240);
    reading.onScrollEnd();
    grow(1600);
    reading.onKey("PageDown", box);
    scrollTo(690);

    expect(reading.isFollowing.value).toBe(false);
  });

  test("text that is put in above is no step of the reader's", () => {
    reading.onKey("End", box);
    box.scrollHeight = 3000;
    box.scrollTop = 2200;
    reading.onMoved(box);
    reading.onScroll(box);

    expect(reading.isFollowing.value).toBe(false);
  });

  test("a scrollbar drawn down to the end follows, and one that is let go before it does not", () => {
    reading.onHold();
    scrollTo(400);
    const halfWay = reading.isFollowing.value;
    box.scrollHeight = 1040;
    scrollTo(500);

    expect(halfWay).toBe(false);
    expect(reading.isFollowing.value).toBe(true);
  });

  test("a scrollbar held still is not caught by what grows", () => {
    reading.onHold();
    scrollTo(460);
    reading.rest();
    grow(1040);
    reading.onRelease();
    scrollTo(470);

    expect(reading.isFollowing.value).toBe(false);
  });
});
