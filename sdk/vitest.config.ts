import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    // A served app of the tests shares the machine with everything else that is checked.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    include: ["tests/**/*.test.{ts,tsx}"],
    isolate: false,
    pool: "threads",
  },
});
