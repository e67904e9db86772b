/** Header names on the wire. Nothing else is sent without a decision record. */
export const HEADER = {
  traceparent: 'traceparent',
  /** Milliseconds left for this request, a decimal integer; each hop subtracts its own elapsed monotonic time. */
  timeout: 'Ambit-Timeout-Ms',
  principal: 'Ambit-Principal',
  actor: 'Ambit-Actor',
  via: 'Ambit-Via',
  messageId: 'Nats-Msg-Id',
  errorCode: 'Nats-Service-Error-Code',
  error: 'Nats-Service-Error',
} as const;
