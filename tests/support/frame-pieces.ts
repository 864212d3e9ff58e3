/** Of frames that a daemon may be sent: put together at random, they nearly make sense. */
export const FRAME_PIECES = [
  '{"jsonrpc":"2.0"',
  ',"id":',
  '"method":"',
  "acquire",
  "}",
  "[",
  "null",
  "\0",
  "é",
  "1e999",
  '"params":{',
  "\\u",
  "relay",
  "\ud800",
];
