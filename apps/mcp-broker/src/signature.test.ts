import { expect, it } from '@jest/globals';
import { signatureOf } from './signature.js';

it('signs as Standard Webhooks has it', () => {
  // The example of the convention's own documents.
  const text = 'msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}';
  expect(signatureOf(text, 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')).toBe('g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

it('takes any other secret as its bytes', () => {
  // RFC 4231, test case 2.
  expect(Buffer.from(signatureOf('what do ya want for nothing?', 'Jefe') ?? '', 'base64').toString('hex')).toBe(
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  );
  const text = 'väl.1.{}';
  expect(signatureOf(text, 'schlüssel')).toBe(signatureOf(text, `whsec_${Buffer.from('schlüssel').toString('base64')}`));
});

it('signs nothing without a key', () => {
  for (const secret of ['', 'whsec_', 'whsec_!']) expect(signatureOf('text', secret)).toBeUndefined();
});
