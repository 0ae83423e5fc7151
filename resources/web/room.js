// Hands the whole invitation on to the application: the key stands in the fragment, which no server sees.
"use strict";

const open = document.getElementById("open");
const copy = document.getElementById("copy");
const said = document.getElementById("said");

open.href += location.search + location.hash;
copy.hidden = false;

function copyByHand(text) {
  // Pages without TLS have no clipboard interface, only this older way.
  const field = document.createElement("textarea");
  field.value = text;
  field.setAttribute("readonly", "");
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

async function copyText(text) {
  if (!navigator.clipboard) return copyByHand(text);
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyByHand(text);
  }
}

copy.addEventListener("click", async () => {
  const done = await copyText(location.href);
  said.textContent = done ? "Copied. Paste it into Pooled." : "Copy the address from the browser's bar.";
});
