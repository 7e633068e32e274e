// Elements are made by name and filled with text: nothing a document says is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";

export const find = (id) => document.getElementById(id);

/** Make an element; `on` holds listeners, children are elements or texts, null ones are left out. */
export function make(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for a picture. */
export function draw(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/** Set a custom property, which the style sheet turns into a width or a colour. */
export function withProperty(element, name, value) {
  element.style.setProperty(name, String(value));
  return element;
}

/** Say something to those who listen instead of looking. */
export function announce(text) {
  find("status").textContent = text;
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, String(value));
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}
