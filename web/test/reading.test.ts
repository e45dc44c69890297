import { beforeEach, expect, test } from "vitest";

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
  reading.onKey("Tab");
  const afterTab = reading.isFollowing.value;
  reading.onKey("PageUp");

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
