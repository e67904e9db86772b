import { SIGNATURE_FILE, SIGNATURE_FORMAT, signedStatement } from '@ambit/capability';
import { readFolder, readPlainFile } from '@ambit/client/manifest';
import { httpApi } from '@ambit/contracts';
import type { Command } from 'commander';
import { createHash, createPrivateKey, createPublicKey, sign, type KeyObject } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Context } from '../context.js';
import { cell } from '../table.js';

const KEY_BYTES = 16 * 1024;

/** `publisher trust | distrust | sign`. */
export function addPublisherCommands(program: Command, context: Context): void {
  const publisher = program.command('publisher').description('whose signature on a plugin package counts');
  publisher
    .command('trust')
    .description('take a publisher’s ed25519 key into the trust store')
    .argument('<publisher>', 'what they are called here')
    .argument('<key>', 'a PEM file with their public key')
    .action(async (name: string, file: string) => {
      const pem = await keyIn(resolve(context.io.cwd, file));
      const client = await context.client();
      const trusted = await client.request(httpApi.trustPublisher, {
        body: { publisher: name, publicKey: raw(createPublicKey(pem)).toString('base64') },
      });
      context.show(trusted, () => `publisher ${cell(trusted.publisher)} is trusted with key ${trusted.keyId}\n`);
    });
  publisher
    .command('distrust')
    .description('trust a key no longer')
    .argument('<keyId>', 'as `ambit get publisher` shows it')
    .action(async (keyId: string) => {
      const answer = await (await context.client()).request(httpApi.distrustPublisher, { params: { keyId } });
      context.show(answer, () => (answer.removed ? `${keyId} is not trusted any more\n` : `${keyId} was not trusted\n`));
    });
  publisher
    .command('sign')
    .description(`write ${SIGNATURE_FILE} into a package’s folder; nothing is sent`)
    .argument('<folder>')
    .requiredOption('--key <file>', 'a PEM file with your ed25519 private key')
    .action(async (folder: string, options: { readonly key: string }) => {
      const at = resolve(context.io.cwd, folder);
      const key = createPrivateKey(await keyIn(resolve(context.io.cwd, options.key)));
      const files = await readFolder(at);
      const keyId = createHash('sha256')
        .update(raw(createPublicKey(key)))
        .digest('hex');
      const signature = sign(null, Buffer.from(signedStatement(files.map(({ entry }) => entry))), key).toString('base64');
      await writeFile(join(at, SIGNATURE_FILE), `${JSON.stringify({ format: SIGNATURE_FORMAT, key: keyId, signature }, null, 2)}\n`);
      context.show({ keyId, files: files.length }, () => `${files.length} files are signed with key ${keyId}\n`);
    });
}

async function keyIn(file: string): Promise<string> {
  const text = Buffer.from((await readPlainFile(file, KEY_BYTES)).bytes).toString('utf8');
  if (text.includes('-----BEGIN ')) return text;
  throw new Error(`${file} is no PEM file; \`openssl genpkey -algorithm ed25519\` makes one`);
}

/** The 32 bytes of an ed25519 public key. */
function raw(key: KeyObject): Buffer {
  const { crv, x } = key.export({ format: 'jwk' });
  if (crv !== 'Ed25519' || x === undefined) throw new Error('the key is not an ed25519 key');
  return Buffer.from(x, 'base64url');
}
